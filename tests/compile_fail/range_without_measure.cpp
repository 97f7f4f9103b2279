// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A range that measures nothing: the compiler names the requirement.
// expected: has_measure<

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

struct silent_range {
  using scalar                           = float;
  using op                               = tersum::native_sum<float>;
  using headroom_type                    = tersum::no_headroom;
  static constexpr bool measures_rotated = false;
  float clip                             = 2;
  tersum::no_headroom headroom{};
};
static_assert(tersum::quantization_range<silent_range>);

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            silent_range,
                            tersum::nearest_quantizer<4>,
                            tersum::saturating_sum<4>>;

int const size = codec::chunk_size;
