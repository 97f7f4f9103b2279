// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A reducer whose words of packed codes would be added as floats.
// expected: tersum: a reducer's op adds words of packed codes: its element is an integer

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/rotate/no_rotation.hpp>

struct float_sum {
  using op                         = tersum::native_sum<float>;
  static constexpr int lane_bits   = 8;
  static constexpr bool biased     = false;
  static constexpr bool saturating = false;
  static constexpr int max_world(int level) { return 127 / level; }
};

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            tersum::rms_range<tersum::no_headroom>,
                            tersum::nearest_quantizer<4>,
                            float_sum>;

int const size = codec::chunk_size;
