// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies and arguments that lack something: the compiler names the requirement.

#include <tersum/reduce/widening_sum.hpp>
#include <tersum/tersum.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

using namespace tersum;

template <class Rotator, class Range, class Quantizer, class Reducer>
int const checked =
  codec<fixed_chunks<1024>, Rotator, summed_codes<Range, Quantizer, Reducer>, in_wire>::chunk_size;

// Whether it is unbiased.
struct silent_quantizer {
  using dither                       = no_dither;
  static constexpr int bits          = 2;
  static constexpr int max_level     = 1;
  static constexpr int fraction_bits = 0;
  constexpr description describe() const { return {"silent_quantizer"}; }
  std::int32_t encode(float value, float, std::uint32_t) const noexcept
  {
    return value > 0 ? 1 : 0;
  }
};
// expected: has_unbiased
int const biased =
  checked<no_rotation, rms_range<no_headroom>, silent_quantizer, saturating_sum<2>>;

// Codes that are no integers, and would be cut.
struct float_quantizer : silent_quantizer {
  static constexpr bool unbiased = false;
  constexpr description describe() const { return {"float_quantizer"}; }
  float encode(float value, float, std::uint32_t) const noexcept { return value > 0 ? 1.0f : 0; }
};
// expected: has_encode
int const cut = checked<no_rotation, rms_range<no_headroom>, float_quantizer, saturating_sum<2>>;

// Who it is: what derives from another policy has another name.
struct nameless : stochastic_quantizer<4> {};
// expected: has_describe
int const told = checked<no_rotation, rms_range<no_headroom>, nameless, saturating_sum<4>>;

// Bits that are no constant.
struct variable_quantizer : stochastic_quantizer<4> {
  int bits = 4;
  constexpr description describe() const { return {"variable_quantizer"}; }
};
// expected: has_bits
static_assert(quantizer<variable_quantizer>);

// Which numbers it draws.
struct half_a_dither {
  static constexpr int rounds = 7;
  constexpr description describe() const { return {"half_a_dither"}; }
};
// expected: counter(block, key)
int const drawn = checked<no_rotation,
                          rms_range<no_headroom>,
                          stochastic_quantizer<4, half_a_dither>,
                          widening_sum<4, 8>>;

// What it measures.
struct silent_range {
  using scalar                           = float;
  using op                               = native_sum<float>;
  using headroom_type                    = no_headroom;
  static constexpr bool measures_rotated = false;
  float clip                             = 2;
  no_headroom headroom{};
  constexpr description describe() const { return {"silent_range"}; }
};
static_assert(quantization_range<silent_range>);
// expected: has_measure<
int const unmeasured = checked<no_rotation, silent_range, nearest_quantizer<4>, saturating_sum<4>>;

// Whether its lanes saturate.
struct silent_sum {
  using op                       = saturating_add<4>;
  static constexpr int lane_bits = 4;
  static constexpr bool biased   = false;
  constexpr description describe() const { return {"silent_sum"}; }
  static constexpr int max_world(int) { return 1 << 20; }
};
// expected: has_saturating
int const summed = checked<no_rotation, rms_range<no_headroom>, nearest_quantizer<4>, silent_sum>;

// The way back.
struct half_a_rotation {
  static constexpr int rotation_size = 1024;
  constexpr description describe() const { return {"half_a_rotation"}; }
  template <class Group, class Chunk>
  void forward(Group const&, Chunk&, Chunk&, rotation_key const&) const
  {
  }
};
// expected: r.backward(g, x, x, key)
int const rotated =
  checked<half_a_rotation, rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>;

// What is kept.
struct half_a_feedback {
  static constexpr bool enabled = true;
  constexpr description describe() const { return {"half_a_feedback"}; }
  template <class Arithmetic>
  float before(Arithmetic const&, float gradient, float) const
  {
    return gradient;
  }
};
// expected: any_group{}, v, v, v)
int const kept =
  codec<fixed_chunks<1024>, no_rotation, cast<half>, in_wire, half_a_feedback>::chunk_size;

// What small scales are raised to.
struct half_a_metric {
  static constexpr bool scaled = true;
  constexpr description describe() const { return {"half_a_metric"}; }
};
// expected: any_group{}, v)
int const in_units =
  codec<fixed_chunks<1024>, no_rotation, cast<half>, in_wire, no_feedback, half_a_metric>::
    chunk_size;

// Whether transports have it built in.
struct plus {
  using element                     = std::uint32_t;
  static constexpr bool associative = true;
  static constexpr bool exact       = true;
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a + b; }
};
// expected: has_native
wire<plus> const sums;

// In which parts it needs no positions. The concept itself, since compilers name no atom of an alternative.
struct shifting : plus {
  static constexpr bool native = false;
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::size_t) const { return a + b; }
  shifting from(std::size_t) const { return *this; }
};
template <has_combine_at Op>
struct positional {
};
// expected: for_each_part
positional<shifting> const op;

// A gradient that must not be written cannot become the mean.
// expected: writable_memory
static_assert(gradient_memory<std::span<float const>>);

// The arguments in another order: the plan is no executor.
auto begin(plan<codec<fixed_chunks<1024>, no_rotation, cast<float>, in_wire>> const& made,
           std::span<std::byte> state)
{
  // expected: has_copy
  return tersum::initialize(made, made, state, 1);
}
