// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: tersum: numbers must be those of IEEE 754: compile without -fsingle-precision-constant and its like

#undef __GCC_IEC_559
#define __GCC_IEC_559 0  // as g++ does for the option

#include <tersum/config.hpp>
