// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies of a codec of sums that mean nothing together, or of which one is wrong in each.

#include <tersum/reduce/widening_sum.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/tersum_baselines.hpp>

#include <cstddef>
#include <cstdint>

using namespace tersum;

template <class Chunker, class Rotator, class Range, class Quantizer, class Reducer, class... More>
int const checked =
  codec<Chunker, Rotator, summed_codes<Range, Quantizer, Reducer>, in_wire, More...>::chunk_size;

// One policy of a codec of which all else is right.
template <class Quantizer = stochastic_quantizer<4>,
          class Reducer   = saturating_sum<4>,
          class Range     = rms_range<no_headroom>>
int const checked_codes =
  codec<fixed_chunks<1024>, no_rotation, summed_codes<Range, Quantizer, Reducer>, in_wire>::
    chunk_size;

struct thousands {
  static constexpr int chunk_size = 1000;
  constexpr description describe() const { return {"thousands"}; }
};
// expected: tersum: chunk_size must be a power of two from 128 to 32768; a cast takes smaller ones
int const chunks =
  checked<thousands, no_rotation, rms_range<>, stochastic_quantizer<4>, saturating_sum<4>>;
// expected: tersum: partial_hadamard<N> rotates whole chunks: make N equal to the chunk size
int const half_chunks = checked<fixed_chunks<1024>,
                                partial_hadamard<512>,
                                rms_range<>,
                                stochastic_quantizer<4>,
                                saturating_sum<4>>;
// expected: tersum: a rotator of whole tensors has no feedback: use partial_hadamard
int const rotated = checked<fixed_chunks<1024>,
                            full_hadamard,
                            global_range<>,
                            stochastic_quantizer<4>,
                            widening_sum<4, 8>,
                            error_feedback>;

// Lanes.
// expected: tersum: a reducer's lane_bits are 2, 4, 8, 16 or 32
int const odd_lanes = checked_codes<stochastic_quantizer<4>, saturating_sum<5>>;
// expected: tersum: the reducer's lanes are narrower than the quantizer's codes
int const narrow_lanes = checked_codes<stochastic_quantizer<5>, saturating_sum<4>>;
// expected: tersum: the reducer's lanes are for a quantizer of other bits
int const codes_of_six_bits = checked_codes<stochastic_quantizer<6>, widening_sum<4, 8>>;
// expected: tersum: tracked_correlation is for saturating lanes of up to 8 bits
int const exact =
  checked_codes<stochastic_quantizer<4>, widening_sum<4, 8>, rms_range<tracked_correlation>>;

// Codes of more bits than kernels pack.
struct wide_quantizer {
  using dither                       = no_dither;
  static constexpr int bits          = 16;
  static constexpr int max_level     = 32767;
  static constexpr int fraction_bits = 0;
  static constexpr bool unbiased     = false;
  constexpr description describe() const { return {"wide_quantizer"}; }
  std::int32_t encode(float value, float scale, std::uint32_t) const noexcept
  {
    return static_cast<std::int32_t>(value * scale);
  }
};
// expected: tersum: a quantizer has 2 to 8 bits
int const wide = checked_codes<wide_quantizer, saturating_sum<16>>;

// The maximum of norms whose sum is asked for: steps would be too small by the root of the world.
struct largest_norm : rms_range<no_headroom> {
  using op = native_max<float>;
  constexpr description describe() const { return {"largest_norm"}; }
};
// expected: tersum: the ranks sum the norms of chunks
int const of_maxima = checked_codes<nearest_quantizer<4>, saturating_sum<4>, largest_norm>;

// Scalars that are written as float and added as half.
struct halved_range : rms_range<no_headroom> {
  using op = native_sum<half>;
  constexpr description describe() const { return {"halved_range"}; }
};
// expected: tersum: a range's scalar is float or bfloat16, and the element of its op
int const of_two_elements = checked_codes<nearest_quantizer<4>, saturating_sum<4>, halved_range>;

// Words of packed codes that would be added as floats.
struct float_sum {
  using op                         = native_sum<float>;
  static constexpr int lane_bits   = 8;
  static constexpr bool biased     = false;
  static constexpr bool saturating = false;
  constexpr description describe() const { return {"float_sum"}; }
  static constexpr int max_world(int level) { return 127 / level; }
};
// expected: tersum: a reducer's op adds words of packed codes: its element is an integer
int const of_floats = checked_codes<nearest_quantizer<4>, float_sum>;

// A reduction that asks where its words lie, which the payload of a codec does not tell it.
struct shifting {
  using element                     = std::uint32_t;
  static constexpr bool native      = false;
  static constexpr bool associative = true;
  static constexpr bool exact       = true;
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::size_t) const { return a + b; }
  shifting from(std::size_t) const { return *this; }
  template <class Visitor>
  void for_each_part(std::size_t count, Visitor&& visit) const
  {
    visit(native_sum<std::uint32_t>{}, std::size_t{0}, count);
  }
};
struct shifting_sum : float_sum {
  using op = shifting;
  constexpr description describe() const { return {"shifting_sum"}; }
};
// expected: it takes two of them wherever they lie
int const of_positions = checked_codes<nearest_quantizer<4>, shifting_sum>;

// Chunks that are chosen.
// expected: tersum: chunks are chosen by their norms: use rms_range, or give your range energy(agreed, coordinates)
int const by_no_norm = checked<top_chunks<1024>,
                               no_rotation,
                               absmax_range<no_headroom>,
                               stochastic_quantizer<4>,
                               saturating_sum<4>>;

// A head-room that would compare what was sent with all there was.
struct largest {
  using scalar                           = float;
  using op                               = native_max<float>;
  using headroom_type                    = tracked_correlation;
  static constexpr bool measures_rotated = false;
  float clip                             = 1;
  tracked_correlation headroom{};
  constexpr description describe() const { return {"largest"}; }

  template <class Group, std::size_t Size>
  float measure(Group const& g, float const (&x)[Size], float (&)[Size]) const
  {
    return g.maximum(Size, [&](int i) { return x[i] < 0 ? -x[i] : x[i]; });
  }
  float rank_range(float agreed, int, float) const { return agreed; }
  float bound(float agreed, int, float coordinates) const { return agreed * coordinates; }
  float energy(float agreed, float) const { return agreed; }
};
// expected: tersum: where chunks are chosen, tracked_correlation compares their sums with their norms: use rms_range
int const tracked =
  checked<top_chunks<1024>, no_rotation, largest, stochastic_quantizer<4>, saturating_sum<4>>;

// Chunks of several widths: the lanes of a reducer of one's own would saturate all the same.
template <int Bits>
struct wrapping_sum : saturating_sum<Bits> {
  using op = native_sum<std::uint32_t>;
  constexpr description describe() const { return {"wrapping_sum"}; }
  template <int Other>
  using with_bits = wrapping_sum<Other>;
};
// expected: tersum: codes of allocated_chunks are added in saturating lanes: use saturating_sum
int const wrapping = checked<allocated_chunks<256, 2, 4, 8>,
                             partial_hadamard<256>,
                             rms_range<>,
                             stochastic_quantizer<8>,
                             wrapping_sum<8>>;
using of_one_width =
  codec<allocated_chunks<256, 2, 4>,
        partial_hadamard<256>,
        summed_codes<rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>,
        in_wire>;
// expected: tersum: allocated_chunks needs a quantizer and a reducer with with_bits
auto const level = of_one_width{}.at_level<1>();

// Where the codes of a shard lie is known before the gradient.
// expected: tersum: shard takes fixed chunks
codec<top_chunks<256>,
      partial_hadamard<256>,
      summed_codes<rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>,
      shard> const chosen{};
