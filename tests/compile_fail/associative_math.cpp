// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The macro is defined as g++ does for the option.
// expected: tersum: sums are taken in the order that is written: compile without -fassociative-math
// option: -D__ASSOCIATIVE_MATH__=1

#include <tersum/config.hpp>
