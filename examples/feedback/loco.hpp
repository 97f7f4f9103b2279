// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! LoCo (Xie et al., 2024): gradients are reduced to shards in 4 bits, and each rank adds a moving average of what it lost.
//! h = g + e, shard = mean of C(h), e = beta e + (1 - beta) (h - C(h)); every T steps e begins anew.

#pragma once

#include <tersum/tersum.hpp>

#include <cstdint>

using loco_codec = tersum::codec<tersum::fixed_chunks<256>,
                                 tersum::partial_hadamard<256>,
                                 tersum::scaled_codes<tersum::lloyd_max<4>>,
                                 tersum::shard,
                                 tersum::averaged_feedback>;

//! The codec whose plans `reduce_scatter_mean` takes: call it in each step.
[[nodiscard]] inline loco_codec loco(float beta, std::uint32_t steps_of_reset)
{
  loco_codec codec;
  codec.feedback = {.averaging = beta, .reset_every = steps_of_reset};
  return codec;
}
