// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What vectors make of a quantizer, code by code, against its plain form where chunks lie as the wire format says.

#include "support/user_quantizers.hpp"

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/quantize/detail/coding.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/sign_quantizer.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace tersum;

namespace {
// Values with scale 2^k, whose products are the places that matter: both zeros, NaN, ties of 1/256, what lies beside 2^-20, levels.
template <class Quantizer>
std::vector<float> awkward_values(std::size_t count, float scale, std::uint32_t seed)
{
  constexpr float unit     = static_cast<float>(1 << Quantizer::fraction_bits);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> places;
  for (float const place : {0.0f, 0x1p-20f, 0x1p-21f, 0.5f, 1.5f, 2.5f, 0x1p-149f, 0x1p20f}) {
    places.insert(places.end(),
                  {std::nextafter(place, -infinity), place, std::nextafter(place, infinity)});
  }
  for (std::uint32_t const nan : {0x7fc00000u, 0x7f812345u, 0x7fc00001u, 0x7fffffffu}) {
    places.push_back(detail::bits_float(nan));
  }
  for (int level = 0; level <= Quantizer::max_level; ++level) {
    for (int part = -1; part <= 2; ++part) {
      places.push_back(unit * static_cast<float>(level) + static_cast<float>(part) / 2);
    }
  }
  std::mt19937 random(seed);
  std::vector<float> values;
  while (values.size() < count) {
    // Half of them anywhere within the grid and somewhat beyond.
    float const place = random() % 2 == 0 ? places[random() % places.size()]
                                          : std::ldexp(static_cast<float>(random() % 65536), -14) *
                                              unit * static_cast<float>(Quantizer::max_level) / 3;
    float const value = place / scale;
    values.push_back(random() % 2 == 0 ? -value : value);
  }
  return values;
}

// The code at a position of the wire, by the formulas of docs/wire_format.md.
template <class Coding>
std::int32_t code_in_wire(std::uint32_t const* words, int position)
{
  using lanes                 = typename Coding::lanes;
  auto const word             = words[position / lanes::lanes];
  int const lane              = position % lanes::lanes;
  std::uint32_t const in_lane = (word >> (lanes::bits * lane)) & lanes::full;
  if (Coding::reducer_type::biased) {
    return static_cast<std::int32_t>(in_lane) - Coding::quantizer_type::max_level;
  }
  return lanes::get(word, lane);
}

template <class Quantizer, class Reducer, int Size>
void compare_codes()
{
  using coding = detail::coding<Size, Quantizer, Reducer>;
  using dither = typename Quantizer::dither;
  dither_key const key{.seed = 77, .step = 3, .rank = 5};
  for (int set = 0; set <= static_cast<int>(best_instruction_set()); ++set) {
    CAPTURE(set);
    int wrong = 0, others = 0;
    for (std::uint64_t chunk = 0; chunk < 8; ++chunk) {
      float const scale = std::ldexp(1.0f, static_cast<int>(5 * chunk) - 20);
      auto const values = awkward_values<Quantizer>(Size, scale, static_cast<std::uint32_t>(chunk));
      detail::chunk_source<float> const source{values.data(), nullptr};
      std::vector<std::uint32_t> words(Size / coding::lanes::lanes);
      detail::encode_chunk(static_cast<instruction_set>(set),
                           coding{},
                           key,
                           std::uint64_t{0},
                           chunk,
                           scale,
                           values.data(),
                           source,
                           words.data(),
                           nullptr);
      for (int position = 0; position < Size; ++position) {
        float const value =
          values[static_cast<std::size_t>(chunk_order<Size>::coordinate(position))];
        // Of NaNs no code travels: see below.
        if (std::isnan(value)) { continue; }
        std::uint32_t byte = 0;
        if constexpr (dither::rounds > 0) {
          byte = dither_byte<dither>(chunk * Size + static_cast<unsigned>(position), key);
        }
        auto const want = static_cast<std::int32_t>(Quantizer{}.encode(value, scale, byte));
        wrong += code_in_wire<coding>(words.data(), position) == want ? 0 : 1;
        others +=
          want != 0 && want != Quantizer::max_level && want != -Quantizer::max_level ? 1 : 0;
      }
    }
    // A chunk that is not finite has the scale 0, and codes of zero.
    std::vector<float> values(Size, detail::bits_float(0xff812345u));
    for (std::size_t i = 0; i < Size; i += 3) { values[i] = std::ldexp(-1.0f, 128); }
    std::vector<std::uint32_t> words(Size / coding::lanes::lanes, ~0u);
    detail::chunk_source<float> const source{values.data(), nullptr};
    detail::encode_chunk(static_cast<instruction_set>(set),
                         coding{},
                         key,
                         std::uint64_t{0},
                         std::uint64_t{0},
                         0.0f,
                         values.data(),
                         source,
                         words.data(),
                         nullptr);
    for (int position = 0; position < Size; ++position) {
      wrong += code_in_wire<coding>(words.data(), position) == 0 ? 0 : 1;
    }
    CHECK(wrong == 0);
    CHECK((others > 0) == (Quantizer::max_level > 1));
  }
}

TEST_CASE(
  "[quantize] values of grids and tables in vectors are those of the plain form, at ties too")
{
  compare_codes<stochastic_quantizer<4>, saturating_sum<4>, 1024>();
  compare_codes<nearest_quantizer<4>, saturating_sum<4>, 512>();
  compare_codes<lookup_quantizer<thc_table_42>, widening_sum<6, 16>, 1024>();
  compare_codes<lookup_quantizer<thc_table_30, stratified>, widening_sum<5, 8>, 512>();
  compare_codes<lookup_quantizer<lookup_table<0, 25, 45, 70>>, widening_sum<7, 16>, 256>();
}

TEST_CASE(
  "[quantize] signs, and quantizers of one's own, make the codes of their plain form in vectors")
{
  compare_codes<sign_quantizer, guard_lanes<4>, 1024>();
  compare_codes<sign_quantizer, widening_sum<2, 8>, 128>();
  compare_codes<tests::powers, saturating_sum<4>, 512>();
  compare_codes<tests::uneven_quantizer, widening_sum<4, 8>, 256>();
}

// Codes of magnitudes a few units in the last place around the ends of cells, against a fused multiply-add and comparisons.
template <int Bits>
void compare_cells()
{
  using book         = lloyd_max<Bits>;
  constexpr int size = 1024;
  std::mt19937 random(Bits);
  std::vector<float> values(size), rows(size);
  for (float& value : values) { value = std::ldexp(static_cast<float>(random() % 4096), -11) - 1; }
  // Each end changes the scale, by less in every turn.
  auto const scale_of = [&] {
    return std::sqrt(size / detail::square_norm<size>(instruction_set::baseline, +values.data()));
  };
  for (int turn = 0; turn < 200; ++turn) {
    float const scale = scale_of();
    for (std::uint32_t i = 0; i < size; i += 2) {
      auto const end =
        detail::float_bits(book::boundaries()[i / 2 % (book::magnitudes - 1)] / scale);
      values[i] = std::copysign(detail::bits_float(end + i / 14 % 9 - 4), values[i]);
    }
  }
  float const scale = scale_of();
  for (int each = 0; each <= static_cast<int>(best_instruction_set()); ++each) {
    std::vector<std::uint32_t> words(size / 32 * Bits + 1);
    auto const with = static_cast<instruction_set>(each);
    detail::rotate_to_rows<size, false>(with, 0u, 0u, +values.data(), rows.data());
    static_cast<void>(detail::quantize_rows<book, size>(with, rows.data(), words.data()));
    int wrong = 0;
    for (unsigned at = 0; at < size; ++at) {
      float const value = values[chunk_order<size>::coordinate(at)];
      float const place = std::fma(std::abs(value), scale * book::slope, book::offset);
      auto want         = std::signbit(value) ? 1u << (Bits - 1) : 0u;
      for (float const end : detail::placed_levels_of<book>.end) { want += place >= end ? 1 : 0; }
      unsigned const word = at * Bits / 32;
      auto const joined   = words[word] | std::uint64_t{words[word + 1]} << 32;
      wrong += (joined >> at * Bits % 32 & ((1u << Bits) - 1u)) == want ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("[quantize] cells in vectors end where places begin, to the last bit")
{
  compare_cells<2>(), compare_cells<3>(), compare_cells<4>();
}

}  // namespace
