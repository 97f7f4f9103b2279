// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Scales that do not fit where scales of blocks lie.
// expected: tersum: the scale of a block has 8 or 16 bits

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/two_shot_codec.hpp>
#include <tersum_baselines/group_absmax.hpp>

struct float_scale : tersum::bfloat16_scale {
  static constexpr int bits = 32;
};

using codec =
  tersum::two_shot_codec<tersum::fixed_chunks<512>,
                         tersum::no_rotation,
                         tersum::group_absmax<4, 16, tersum::linear_levels, float_scale>>;

int const size = codec::chunk_size;
