// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Each role accepts a type with its atoms and refuses one that lacks any of them. All of it is checked by the compiler.

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/concepts.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <type_traits>

namespace {

// One requirement each; a policy is put together from them.
struct with_bits {
  static constexpr int bits = 4;
};
struct with_max_level {
  static constexpr int max_level = 7;
};
struct with_fraction_bits {
  static constexpr int fraction_bits = 8;
};
struct with_unbiased {
  static constexpr bool unbiased = true;
};
struct with_dither {
  using dither = tersum::independent;
};
struct with_encode {
  std::int32_t encode(float, float, std::uint32_t) const { return 0; }
};
struct with_rounds {
  static constexpr int rounds = 7;
};
struct with_no_rounds {
  static constexpr int rounds = 0;
};
struct with_draw {
  static constexpr tersum::philox_block counter(std::uint64_t, tersum::dither_key const&)
  {
    return {};
  }
  static constexpr std::uint32_t mask(tersum::dither_key const&) { return 0; }
};
struct with_chunk_size {
  static constexpr int chunk_size = 256;
};
struct with_budget {
  float bits = 2;
};
struct with_by_norm {
  static constexpr bool by_norm = true;
};
struct with_score {
  std::uint32_t score(std::uint32_t energy, tersum::chunk_key const&) const { return energy; }
};
struct with_level_count {
  static constexpr int level_count = 2;
};
struct with_one_width {
  static constexpr bool several_bits = false;
};
struct with_several_bits {
  static constexpr bool several_bits = true;
};
struct with_widths {
  static constexpr int widths[] = {2, 4};
  float weighting               = 1;
};
struct with_rotation_size {
  static constexpr int rotation_size = 1;
};
struct with_forward {
  template <class Group>
  void forward(Group const&, float (&)[128], float (&)[128], tersum::rotation_key const&) const
  {
  }
};
struct with_backward {
  template <class Group>
  void backward(Group const&, float (&)[128], float (&)[128], tersum::rotation_key const&) const
  {
  }
};
struct with_measures_rotated {
  static constexpr bool measures_rotated = false;
};
struct with_measure {
  template <class Group, int Size>
  float measure(Group const&, float const (&)[Size], float (&)[Size]) const
  {
    return 1;
  }
};
struct with_rank_range {
  float rank_range(float agreed, int, float) const { return agreed; }
  float bound(float agreed, int, float) const { return agreed; }
};
struct with_factor {
  float factor(int, float) const { return 1; }
};
struct with_tracked {
  static constexpr bool tracked = false;
};
struct with_scalar {
  using scalar = float;
};
struct with_op {
  using op = tersum::native_sum<float>;
};
struct with_headroom {
  using headroom_type = tersum::no_headroom;
  tersum::no_headroom headroom{};
};
struct with_headroom_type {
  using headroom_type = tersum::no_headroom;
};
struct with_number_for_headroom {
  using headroom_type = int;
  int headroom        = 1;
};
struct with_clip {
  float clip = 1;
};
struct with_element {
  using element = std::uint32_t;
};
struct with_native {
  static constexpr bool native = true;
};
struct with_associative {
  static constexpr bool associative = true;
};
struct with_exact {
  static constexpr bool exact = true;
};
struct with_combine {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a + b; }
};
struct with_lane_bits {
  static constexpr int lane_bits = 8;
};
struct with_max_world {
  static constexpr int max_world(int) { return 1; }
};
struct with_biased {
  static constexpr bool biased = false;
};
struct with_saturating {
  static constexpr bool saturating = false;
};
struct with_enabled {
  static constexpr bool enabled = true;
};
struct with_no_feedback {
  static constexpr bool enabled = false;
};
struct with_before {
  template <class Arithmetic>
  float before(Arithmetic const&, float gradient, float) const
  {
    return gradient;
  }
};
struct with_after {
  template <class Arithmetic>
  float after(Arithmetic const&, float, float lost, float) const
  {
    return lost;
  }
};

struct named {};

template <class... Atoms>
struct of : Atoms... {
};
template <class... Atoms>
requires((std::is_same_v<Atoms, named> || ...)) struct of<Atoms...> : Atoms... {
  constexpr tersum::description describe() const { return {"of"}; }
};

// Copying it is not trivial, which no policy may be.
struct with_heavy {
  std::string text;
};

struct without {};

template <auto Role, class... Atoms>
constexpr bool takes = Role(std::type_identity<of<Atoms...>>{});

template <auto Role, class Missing, class... Atoms>
constexpr bool takes_all_but =
  takes<Role, std::conditional_t<std::is_same_v<Atoms, Missing>, without, Atoms>...>;

// Whether a type with these atoms has the role, and none that lacks one of them.
template <auto Role, class... Atoms>
constexpr bool needs = takes<Role, Atoms...> && !takes<Role, Atoms..., with_heavy> &&
                       (!takes_all_but<Role, Atoms, Atoms...> && ...);

#define TERSUM_ROLE(concept) []<class T>(std::type_identity<T>) { return tersum::concept<T>; }
constexpr auto is_dither_source = TERSUM_ROLE(dither_source);
constexpr auto is_chunker       = TERSUM_ROLE(chunker);
constexpr auto is_selecting     = TERSUM_ROLE(selecting_chunker);
constexpr auto is_rotator       = TERSUM_ROLE(rotator);
constexpr auto is_headroom      = TERSUM_ROLE(headroom);
constexpr auto is_feedback      = TERSUM_ROLE(feedback);
constexpr auto is_quantizer     = TERSUM_ROLE(quantizer);
constexpr auto is_reduce_op     = TERSUM_ROLE(reduce_op);
constexpr auto is_range         = TERSUM_ROLE(quantization_range);
constexpr auto is_reducer       = TERSUM_ROLE(reducer);
#undef TERSUM_ROLE

static_assert(needs<is_dither_source, named, with_rounds, with_draw>,
              "who draws must say what from");
static_assert(takes<is_dither_source, named, with_no_rounds>);

static_assert(needs<is_chunker, named, with_chunk_size>);
static_assert(needs<is_selecting,
                    named,
                    with_chunk_size,
                    with_budget,
                    with_by_norm,
                    with_score,
                    with_level_count,
                    with_one_width>);
static_assert(needs<is_selecting,
                    named,
                    with_chunk_size,
                    with_budget,
                    with_by_norm,
                    with_score,
                    with_level_count,
                    with_several_bits,
                    with_widths>);

static_assert(needs<is_rotator, named, with_rotation_size, with_forward, with_backward>);
static_assert(needs<is_headroom, named, with_factor, with_tracked>);
static_assert(needs<is_feedback, named, with_enabled, with_before, with_after>);
static_assert(takes<is_feedback, named, with_no_feedback>);
static_assert(needs<is_quantizer,
                    named,
                    with_bits,
                    with_max_level,
                    with_fraction_bits,
                    with_unbiased,
                    with_dither,
                    with_encode>);
static_assert(
  needs<is_reduce_op, with_element, with_native, with_associative, with_exact, with_combine>);
static_assert(needs<is_range,
                    named,
                    with_scalar,
                    with_op,
                    with_headroom,
                    with_clip,
                    with_measures_rotated,
                    with_measure,
                    with_rank_range>);

template <class Headroom>
constexpr bool ranges = takes<is_range,
                              named,
                              with_scalar,
                              with_op,
                              Headroom,
                              with_clip,
                              with_measures_rotated,
                              with_measure,
                              with_rank_range>;
static_assert(ranges<with_headroom>);
static_assert(!ranges<with_headroom_type> && !ranges<with_number_for_headroom>);
static_assert(
  needs<is_reducer, named, with_lane_bits, with_op, with_max_world, with_biased, with_saturating>);

// The signatures count, not only the names.
struct with_text_bits {
  static constexpr char const* bits = "4";
};
struct with_encode_nothing {
  void encode(float, float, std::uint32_t) const {}
};
struct with_encode_mutable {
  std::int32_t encode(float, float, std::uint32_t) { return 0; }
};
struct with_encode_without_random {
  std::int32_t encode(float, float) const { return 0; }
};
struct with_combine_wider {
  std::uint64_t operator()(std::uint32_t a, std::uint32_t b) const { return std::uint64_t{a} + b; }
};
struct with_combine_mutable {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) { return a + b; }
};

template <class Bits, class Encode>
constexpr bool quantizes = takes<is_quantizer,
                                 named,
                                 Bits,
                                 with_max_level,
                                 with_fraction_bits,
                                 with_unbiased,
                                 with_dither,
                                 Encode>;
static_assert(!quantizes<with_text_bits, with_encode>);
static_assert(!quantizes<with_bits, with_encode_nothing>);
static_assert(!quantizes<with_bits, with_encode_mutable>);
static_assert(!quantizes<with_bits, with_encode_without_random>);

template <class Combine>
constexpr bool reduces =
  takes<is_reduce_op, with_element, with_native, with_associative, with_exact, Combine>;
static_assert(!reduces<with_combine_wider> && !reduces<with_combine_mutable>);

static_assert(tersum::gradient_element<float> && tersum::gradient_element<tersum::half> &&
              tersum::gradient_element<tersum::bfloat16>);
static_assert(!tersum::gradient_element<double> && !tersum::gradient_element<int> &&
              !tersum::gradient_element<float const>);

// One policy does not pass for another.
static_assert(!tersum::rotator<tersum::fixed_chunks<256>> && !tersum::chunker<tersum::independent>);

}  // namespace

TEST_CASE("what is asserted above holds, since this file compiles") {}
