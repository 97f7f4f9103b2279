// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codebook with more levels than its codes can number.
// expected: tersum: a code has 1 to 8 bits, one of them for the sign: magnitudes is 2^(bits - 1)

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/two_shot_codec.hpp>

#include <limits>

struct three_levels {
  static constexpr int bits       = 2;
  static constexpr int magnitudes = 3;
  static constexpr bool unbiased  = true;
  static constexpr float numbers[]{
    .3f, 1.0f, 2.0f, .65f, 1.5f, std::numeric_limits<float>::infinity()};
  static constexpr float const* levels() { return numbers; }
  static constexpr float const* boundaries() { return numbers + 3; }
  static constexpr float distortion() { return .1f; }
};

using codec =
  tersum::two_shot_codec<tersum::fixed_chunks<256>, tersum::partial_hadamard<256>, three_levels>;

int const size = codec::chunk_size;
