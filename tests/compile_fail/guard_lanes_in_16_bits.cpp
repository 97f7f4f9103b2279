// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A word that no transport of packed lanes sums.
// expected: tersum: guard_lanes<LaneBits, Word> is summed as std::uint32_t or std::uint64_t

#include <tersum/reduce/guard_lanes.hpp>

#include <cstdint>

int const world = tersum::guard_lanes<8, std::uint16_t>::max_world(7);
