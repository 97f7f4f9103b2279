// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two shots of policies that mean nothing together, or of which one is wrong in each.

#include <tersum/tersum.hpp>
#include <tersum_baselines/tersum_baselines.hpp>

#include <limits>

using namespace tersum;

template <class Chunker, class Rotator, class Quantizer, class... More>
int const checked = codec<Chunker, Rotator, scaled_codes<Quantizer>, two_shot, More...>::chunk_size;

// expected: tersum: codes with scales of their own need chunks of at least 256
int const small = checked<fixed_chunks<128>, partial_hadamard<128>, lloyd_max<4>>;
// expected: tersum: codes with scales of their own take fixed_chunks or allocated_chunks
int const chosen = checked<top_chunks<256>, partial_hadamard<256>, lloyd_max<4>>;
// expected: tersum: a codebook with scales of its own takes whole chunks rotated: use
int const as_they_are = checked<fixed_chunks<1024>, no_rotation, lloyd_max<4>>;
// expected: tersum: two_shot_to takes fixed chunks
int const two_ways = codec<allocated_chunks<512, 1, 2, 4>,
                           partial_hadamard<512>,
                           scaled_codes<lloyd_max<2>>,
                           two_shot_to<scaled_codes<lloyd_max<1>>>>::chunk_size;
// expected: tersum: two_shot_to is for codes of unlike widths: use two_shot for one width
int const one_way = codec<fixed_chunks<512>,
                          partial_hadamard<512>,
                          scaled_codes<lloyd_max<2>>,
                          two_shot_to<scaled_codes<lloyd_max<2>>>>::chunk_size;
// Codes of which each rank has another scale, for an all-reduce that adds them.
// expected: tersum: in_wire takes summed_codes or a cast: codes with scales of their own cannot be
int const in_the_wire =
  codec<fixed_chunks<512>, partial_hadamard<512>, scaled_codes<lloyd_max<4>>, in_wire>::chunk_size;
// Codes in steps that all ranks agree on, for owners who read scales.
// expected: tersum: summed_codes are added as they are, in steps that the ranks agree on: use
int const in_steps =
  codec<fixed_chunks<512>,
        partial_hadamard<512>,
        summed_codes<rms_range<no_headroom>, stochastic_quantizer<4>, saturating_sum<4>>,
        two_shot>::chunk_size;
// The largest scale of a chunk is found among the threads of a warp.
// expected: tersum: a metric with scales takes chunks of up to 1024 coordinates
int const in_units =
  checked<fixed_chunks<2048>, partial_hadamard<2048>, lloyd_max<4>, no_feedback, kept_diagonal>;

// More levels than codes can number.
struct three_levels {
  static constexpr int bits       = 2;
  static constexpr int magnitudes = 3;
  static constexpr bool unbiased  = true;
  constexpr description describe() const { return {"three_levels"}; }
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
  constexpr description describe() const { return {"one_bit"}; }
  static constexpr float const* boundaries() { return numbers + 5; }
};
// expected: tersum: codes with scales of their own and allocated_chunks need a quantizer
auto const bytes =
  codec<allocated_chunks<256, 1, 2>, partial_hadamard<256>, scaled_codes<one_bit>, two_shot>{}
    .plan({.coordinates = 1000}, {})
    .wire_bytes();

// Blocks with scales.
struct float_scale : bfloat16_scale {
  static constexpr int bits = 32;
  constexpr description describe() const { return {"float_scale"}; }
};
// expected: tersum: the scale of a block has 8 or 16 bits
int const long_scales =
  checked<fixed_chunks<512>, no_rotation, group_absmax<4, 16, linear_levels, float_scale>>;
struct odd_blocks : group_absmax<4, 16> {
  static constexpr int block = 24;
  constexpr description describe() const { return {"odd_blocks"}; }
};
// expected: tersum: a block with numbers of its own has 16, 32, 64 or 128 coordinates
int const blocks_of_24 = checked<fixed_chunks<512>, no_rotation, odd_blocks>;
// Eight blocks a chunk, whose scales would fill half of 16 bytes.
// expected: tersum: block scales lie in whole 16 bytes: a
int const few_blocks = checked<fixed_chunks<256>, no_rotation, group_absmax<4, 32>>;

// Neither a codebook nor blocks.
// expected: part_quantizer
int const uniform = checked<fixed_chunks<1024>, partial_hadamard<1024>, stochastic_quantizer<4>>;
