// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A reducer that does not say whether its lanes saturate: the compiler names the requirement.
// expected: has_saturating

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

struct silent_sum {
  using op                       = tersum::saturating_add<4>;
  static constexpr int lane_bits = 4;
  static constexpr bool biased   = false;
  static constexpr int max_world(int) { return 1 << 20; }
};

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            tersum::rms_range<tersum::no_headroom>,
                            tersum::nearest_quantizer<4>,
                            silent_sum>;

int const size = codec::chunk_size;
