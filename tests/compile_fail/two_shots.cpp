// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two shots of policies that mean nothing together, or of which one is wrong in each.

#include <tersum/tersum.hpp>
#include <tersum_baselines/tersum_baselines.hpp>

#include <limits>

using namespace tersum;

template <class... Policies>
int const checked = two_shot_codec<Policies...>::chunk_size;

// expected: tersum: two_shot_codec needs chunks of at least 256
int const small = checked<fixed_chunks<128>, partial_hadamard<128>, lloyd_max<4>>;
// expected: tersum: two_shot_codec takes fixed_chunks or allocated_chunks
int const chosen = checked<top_chunks<256>, partial_hadamard<256>, lloyd_max<4>>;
// expected: tersum: two_shot_codec rotates whole chunks for a codebook: use
int const as_they_are = checked<fixed_chunks<1024>, no_rotation, lloyd_max<4>>;
// expected: tersum: ways<Up, Down> takes fixed_chunks
int const two_ways =
  checked<allocated_chunks<512, 1, 2, 4>, partial_hadamard<512>, ways<lloyd_max<2>, lloyd_max<1>>>;
// The largest scale of a chunk is found among the threads of a warp.
// expected: tersum: a metric with scales takes chunks of up to 1024 coordinates
int const in_units =
  checked<fixed_chunks<2048>, partial_hadamard<2048>, lloyd_max<4>, no_feedback, kept_diagonal>;

// More levels than codes can number.
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
// expected: tersum: a code has 1 to 8 bits, one of them for the sign: magnitudes is 2^(bits - 1)
int const of_three = checked<fixed_chunks<256>, partial_hadamard<256>, three_levels>;

// A codebook of one width under chunks of several.
struct one_bit : three_levels {
  static constexpr int bits       = 1;
  static constexpr int magnitudes = 1;
  static constexpr float const* boundaries() { return numbers + 5; }
};
// expected: tersum: two_shot_codec with allocated_chunks needs a quantizer
auto const bytes = two_shot_codec<allocated_chunks<256, 1, 2>, partial_hadamard<256>, one_bit>{}
                     .plan({.coordinates = 1000}, {})
                     .wire_bytes();

// Blocks with scales.
struct float_scale : bfloat16_scale {
  static constexpr int bits = 32;
};
// expected: tersum: the scale of a block has 8 or 16 bits
int const long_scales =
  checked<fixed_chunks<512>, no_rotation, group_absmax<4, 16, linear_levels, float_scale>>;
struct odd_blocks : group_absmax<4, 16> {
  static constexpr int block = 24;
};
// expected: tersum: a block with numbers of its own has 16, 32, 64 or 128 coordinates
int const blocks_of_24 = checked<fixed_chunks<512>, no_rotation, odd_blocks>;
// Eight blocks a chunk, whose scales would fill half of 16 bytes.
// expected: tersum: two_shot_codec keeps block scales in whole 16 bytes: a
int const few_blocks = checked<fixed_chunks<256>, no_rotation, group_absmax<4, 32>>;

// Neither a codebook nor blocks.
// expected: no operand of the disjunction is satisfied
int const uniform = checked<fixed_chunks<1024>, partial_hadamard<1024>, stochastic_quantizer<4>>;
