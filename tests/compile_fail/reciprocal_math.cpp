// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The macro is defined as g++ does for the option.
// expected: tersum: a quotient is rounded once: compile without -freciprocal-math
// option: -D__RECIPROCAL_MATH__=1

#include <tersum/config.hpp>
