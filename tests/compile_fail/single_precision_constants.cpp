// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The macro is defined as g++ does for the option.
// expected: tersum: numbers must be those of IEEE 754: compile without -fsingle-precision-constant and its like
// option: -U__GCC_IEC_559
// option: -D__GCC_IEC_559=0

#include <tersum/config.hpp>
