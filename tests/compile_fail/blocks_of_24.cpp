// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Blocks that do not fill a chunk.
// expected: tersum: a block with numbers of its own has 16, 32, 64 or 128 coordinates

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/two_shot_codec.hpp>
#include <tersum_baselines/group_absmax.hpp>

struct odd_blocks : tersum::group_absmax<4, 16> {
  static constexpr int block = 24;
};

using codec = tersum::two_shot_codec<tersum::fixed_chunks<512>, tersum::no_rotation, odd_blocks>;

int const size = codec::chunk_size;
