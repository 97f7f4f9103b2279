// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Integers that no transport sums.
// expected: tersum: widening_sum<CodeBits, LaneBits> sums native integers of 8, 16 or 32 bits

#include <tersum/reduce/widening_sum.hpp>

int const world = tersum::widening_sum<4, 4>::max_world(7);
