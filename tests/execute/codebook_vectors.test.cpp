// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Vectors find the codes of codebooks with so many levels that lines tell a cell: the bytes of the plain form, on every instruction set.

#include "../conformance/codebook_conformance.hpp"
#include "../conformance/plain_forms.hpp"

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
  constexpr std::uint64_t none = 0;
  detail::rotate_to_rows<Size, false>(set, none, none, in.data(), rows.data());
  out.scale = codes::template encode<no_dither>(set, {}, 0, rows.data(), out.words.data());
  codes::add(set, out.words.data(), .37F, rows.data(), false);
  detail::rotate_from_rows<Size, false>(set, none, none, 1.0f, rows.data(), out.added.data());
  rows.fill(std::numeric_limits<float>::quiet_NaN());
  codes::add(set, out.words.data(), 1, rows.data(), true);
  detail::rotate_from_rows<Size, false>(set, none, none, 1.0f, rows.data(), out.fresh.data());
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
    ends.insert(ends.end(), 4, lines::end(i));
    energy += 4 * static_cast<double>(lines::end(i)) * lines::end(i);
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
      if (random() % 2 == 0) { value = -value; }
    }
    compare<Codebook, size>(in);
  }
}

}  // namespace

TEST_CASE(
  "[codebook_vectors] values at the ends of cells, and beside them, get the codes of the plain form where lines tell the cell")
{
  compare_ends<lloyd_max<8>>();
}
