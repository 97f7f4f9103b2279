// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Vectors find the codes of codebooks that name the ends of their cells, and of those with so many levels that lines tell a cell: the
//! bytes of the plain form, on every instruction set.

#include "../conformance/codebook_conformance.hpp"
#include "../conformance/plain_forms.hpp"

#include <tersum/baseline/normal_float.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/quantize/detail/cell_lines.hpp>
#include <tersum/quantize/lloyd_max.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace tersum;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Cells that end at multiples of a power of two, zero among them.
template <int Bits>
struct even_cells {
  static constexpr int bits      = Bits;
  static constexpr bool unbiased = true;
  static constexpr int half      = 1 << (Bits - 1);
  static constexpr float width   = 2.0F / half;

  static constexpr std::array<float, 2 * half> level = [] {
    std::array<float, 2 * half> out{};
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = width * (static_cast<float>(static_cast<int>(i) - half) + .5F);
    }
    return out;
  }();
  static constexpr std::array<float, 2 * half> end = [] {
    std::array<float, 2 * half> out{};
    for (std::size_t i = 0; i < out.size(); ++i) { out[i] = level[i] + width / 2; }
    return out;
  }();

  static constexpr float const* levels() { return level.data(); }
  static constexpr float const* ends() { return end.data(); }
  static std::uint32_t encode(float value)
  {
    std::uint32_t code = 0;
    while (code + 1 < level.size() && value >= end[code]) { ++code; }
    return code;
  }
  static float decode(std::uint32_t code) { return level[code]; }
};
static_assert(codebook<even_cells<4>> && has_ends<even_cells<4>>);

// Cells that each are a fraction of the next larger one, which no line is near.
struct growing_cells {
  static constexpr int bits      = 8;
  static constexpr bool unbiased = true;

  static constexpr std::array<float, 256> end = [] {
    std::array<float, 256> out{};
    float at = 4;
    for (std::size_t i = 0; i < 127; ++i, at *= .875F) {
      out[i]       = -at;
      out[254 - i] = at;
    }
    return out;
  }();

  static constexpr std::array<float, 256> level = [] {
    std::array<float, 256> out{};
    for (std::size_t i = 1; i < 255; ++i) { out[i] = (end[i - 1] + end[i]) / 2; }
    out[0]   = -5;
    out[255] = 5;
    return out;
  }();

  static constexpr float const* levels() { return level.data(); }
  static constexpr float const* ends() { return end.data(); }
  static std::uint32_t encode(float value)
  {
    std::uint32_t code = 0;
    while (code < 255 && value >= end[code]) { ++code; }
    return code;
  }
  static float decode(std::uint32_t code) { return level[code]; }
};
static_assert(codebook<growing_cells> && !detail::cell_lines<growing_cells>::serves);

// What the plain form makes of a chunk, and what its codes add to values.
template <class Codebook, int Size>
struct coded {
  std::array<std::uint32_t, detail::code_words<Codebook>(Size)> words{};
  float scale = 0;
  std::array<float, Size> fresh{}, added{};

  bool operator==(coded const&) const = default;
};

template <class Form, int Size>
coded<Form, Size> code(instruction_set set, std::vector<float> const& in)
{
  using codes = detail::chunk_codes<Form, Size>;
  coded<Form, Size> out;
  out.words.fill(0xdeadbeefU);
  std::array<float, Size> rows;
  detail::array_to_rows<Size>(set, in.data(), rows.data());
  out.scale = codes::template encode<no_dither>(set, {}, 0, rows.data(), out.words.data());
  codes::template add<>(set, out.words.data(), .37F, rows.data(), false);
  detail::rows_to_array<Size>(set, rows.data(), out.added.data());
  rows.fill(std::numeric_limits<float>::quiet_NaN());
  codes::template add<>(set, out.words.data(), 1, rows.data(), true);
  detail::rows_to_array<Size>(set, rows.data(), out.fresh.data());
  return out;
}

template <class Codebook, int Size>
void compare(std::vector<float> const& in)
{
  using plain     = tests::plain_codebook<Codebook>;
  auto const want = code<plain, Size>(instruction_set::baseline, in);
  for (instruction_set const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    CAPTURE(static_cast<int>(set));
    if (!cpu_executor{.threads = 1, .instructions = set}.check().ok()) { continue; }
    auto const got = code<Codebook, Size>(set, in);
    CHECK(got.words == want.words);
    CHECK(detail::float_bits(got.scale) == detail::float_bits(want.scale));
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (detail::float_bits(got.fresh[i]) != detail::float_bits(want.fresh[i]) ||
          detail::float_bits(got.added[i]) != detail::float_bits(want.added[i])) {
        CAPTURE(i);
        FAIL_CHECK("a value that differs");
        break;
      }
    }
  }
}

// All ends of cells, what lies beside them, and what else makes the root mean square about 1: the values in root mean squares are up
// to eight units in the last place from those given here.
template <class Codebook>
void compare_ends()
{
  constexpr int size = 2048;
  using lines        = detail::cell_lines<Codebook>;
  static_assert(lines::serves);
  std::mt19937 random(7);
  std::vector<float> ends;
  double energy = 0;
  for (std::size_t i = 0; i + 1 < lines::count; ++i) {
    ends.insert(ends.end(), lines::both_signs ? 2 : 4, lines::end(i));
    energy += (lines::both_signs ? 2 : 4) * static_cast<double>(lines::end(i)) * lines::end(i);
  }
  REQUIRE(energy < size);
  auto const filler =
    static_cast<float>(std::sqrt((size - energy) / static_cast<double>(size - ends.size())));
  ends.resize(size, filler);
  for (int ulps = -8; ulps <= 8; ++ulps) {
    CAPTURE(ulps);
    std::shuffle(ends.begin(), ends.end(), random);
    std::vector<float> in = ends;
    for (float& value : in) {
      value = detail::bits_float(detail::float_bits(value) + static_cast<std::uint32_t>(ulps));
      if (!lines::both_signs && random() % 2 == 0) { value = -value; }
    }
    compare<Codebook, size>(in);
  }
}

template <class Codebook, int Size>
void compare_chunks()
{
  CAPTURE(Codebook::bits);
  static_assert(detail::has_vectors<Codebook> &&
                !detail::has_vectors<tests::plain_codebook<Codebook>>);
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> in(Size);
  for (float& value : in) { value = 3 * normal(random); }
  compare<Codebook, Size>(in);
  in[5]  = 0.0F;
  in[77] = -0.0F;
  in[99] = 400;  // the last code, and its opposite the first
  in[98] = -400;
  compare<Codebook, Size>(in);
  in[131] = std::numeric_limits<float>::quiet_NaN();
  compare<Codebook, Size>(in);
  in[131] = -infinity;
  compare<Codebook, Size>(in);
  compare<Codebook, Size>(std::vector<float>(Size));
  compare<Codebook, Size>(std::vector<float>(Size, 1e-17F));  // next to nothing

  // The root mean square is 1 and all of it is exact, so that values are ends of cells.
  std::array const eight{2.25F, -1.5F, .75F, .25F, -.25F, 0.0F, -0.0F, 0.0F};
  for (std::size_t i = 0; i < in.size(); i += 8) {
    for (std::size_t k = 0; k < 8; ++k) {
      in[i + k] = eight[(k * 5 + i / 8) % 8] * (i % 16 == 0 ? 1.0F : -1.0F);
    }
  }
  compare<Codebook, Size>(in);
  for (std::size_t i = 0; i < in.size(); ++i) { in[i] = i % 3 == 0 ? 1.0F : -1.0F; }
  compare<Codebook, Size>(in);
}

}  // namespace

TEST_CASE_TEMPLATE("[codebook_vectors] codes by ends are those of the plain form",
                   Codebook,
                   normal_float<2>,
                   normal_float<3>,
                   normal_float<4>,
                   normal_float<5>,
                   normal_float<6>,
                   normal_float<8>,
                   even_cells<1>,
                   even_cells<4>,
                   even_cells<7>,
                   even_cells<8>,
                   growing_cells)
{
  tests::check_codebook_laws<Codebook>();
  compare_chunks<Codebook, 512>();
  if constexpr (Codebook::bits == 4) {
    compare_chunks<Codebook, 256>();
    compare_chunks<Codebook, 2048>();
  }
}

TEST_CASE_TEMPLATE(
  "[codebook_vectors] values at the ends of cells, and beside them, get the codes of the plain form where lines tell the cell",
  Codebook,
  normal_float<8>,
  lloyd_max<8>,
  even_cells<8>)
{
  compare_ends<Codebook>();
}
