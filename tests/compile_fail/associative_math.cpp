// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: tersum: sums are taken in the order that is written: compile without -fassociative-math

#define __ASSOCIATIVE_MATH__ 1  // as g++ does for the option

#include <tersum/config.hpp>
