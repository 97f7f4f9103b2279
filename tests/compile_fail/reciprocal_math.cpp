// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: tersum: a quotient is rounded once: compile without -freciprocal-math

#define __RECIPROCAL_MATH__ 1  // as g++ does for the option

#include <tersum/config.hpp>
