// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Vectors find the codes of codebooks that name the ends of their cells: the bytes of the plain form, on every instruction set.

#include "../conformance/codebook_conformance.hpp"
#include "../conformance/plain_forms.hpp"

#include <tersum/baseline/normal_float.hpp>
#include <tersum/execute/cpu_executor.hpp>

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
                   even_cells<7>)
{
  tests::check_codebook_laws<Codebook>();
  compare_chunks<Codebook, 512>();
  if constexpr (Codebook::bits == 4) {
    compare_chunks<Codebook, 256>();
    compare_chunks<Codebook, 2048>();
  }
}
