// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies with parameters that they cannot have.

#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/tersum_baselines.hpp>

#include <cstdint>

using namespace tersum;

// Sizes.
// expected: tersum: fixed_chunks<Size> needs a power of two from 128 to 32768
int const chunk = fixed_chunks<1000>::chunk_size;
// expected: tersum: block_chunk<Size> needs a power of two from 32 to 32768
int const block = block_chunk<1000>::threads;
// expected: tersum: partial_hadamard<Size> needs a power of two from 128 to 32768
int const rotation = partial_hadamard<64>::rotation_size;
// expected: tersum: low_rank<Rank> needs 1 <= Rank <= 64
low_rank<65> const wide{};
// expected: tersum: philox4x32<Rounds> needs 1 <= Rounds <= 16
philox_block const counter = philox4x32<0>({{1, 2, 3, 4}}, 5);

// What is agreed, in a type that rounds it down or that it overflows.
// expected: tersum: the agreed scalars travel as float or bfloat16
absmax_range<no_headroom, half> const magnitudes;
// expected: tersum: squared norms underflow and overflow in half: use float or bfloat16
global_range<no_headroom, half> const norm;
// expected: tersum: squared norms underflow and overflow in half: use float or bfloat16
rms_range<no_headroom, half> const norms;
// expected: tersum: squared norms underflow and overflow in half: use float or bfloat16
top_chunks<64, half> const chooser;

// Codes.
// expected: tersum: stochastic_quantizer<Bits> needs 2 <= Bits <= 8
int const limit = stochastic_quantizer<9>::max_level;
// expected: tersum: nearest_quantizer<Bits> needs 2 <= Bits <= 8
int const no_level_but_zero = nearest_quantizer<1>::max_level;
// expected: tersum: lloyd_max<Bits> needs 1 <= Bits <= 16
auto const bits = lloyd_max<17>::bits;
// expected: tersum: group_absmax<Bits, Block, float_levels> needs the bits of that float
int const levels_of_4_bits = group_absmax<5, 32, e2m1_levels>::magnitudes;
// expected: tersum: lookup_table<Values...> needs a power of two of values
auto const lopsided = lookup_table<0, 1, 2, 4>::count;

// Lanes.
// expected: tersum: packed_codes<Bits> has lanes of 2, 4, 8, 16 or 32 bits
int const lanes = packed_codes<3>::lanes;
// expected: tersum: guard_lanes<LaneBits, Word> is summed as std::uint32_t or std::uint64_t
int const world_16 = guard_lanes<8, std::uint16_t>::max_world(7);
// expected: tersum: guard_lanes<LaneBits> has lanes of 4, 8 or 16 bits
int const world_2 = guard_lanes<2>::max_world(1);
// expected: tersum: widening_sum<CodeBits, LaneBits> sums native integers of 8, 16 or 32 bits
int const world_4 = widening_sum<4, 4>::max_world(7);
// expected: tersum: lookup_sum has indices of 1, 2, 4 or 8 bits
int const world_3 = lookup_sum<lookup_table<0, 1, 2, 3, 5, 6, 7, 8>>::max_world;
