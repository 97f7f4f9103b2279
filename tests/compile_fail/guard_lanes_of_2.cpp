// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Lanes without room for a guard bit.
// expected: tersum: guard_lanes<LaneBits> has lanes of 4, 8 or 16 bits

#include <tersum/reduce/guard_lanes.hpp>

int const world = tersum::guard_lanes<2>::max_world(1);
