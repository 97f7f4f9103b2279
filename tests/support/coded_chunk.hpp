// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks in codes with scales of their own, read bit by bit as the wire format has them.

#pragma once

#include "mismatches.hpp"

#include <tersum/quantize/detail/codebook_cells.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tersum::tests {

//! @brief A code of a string of them, all of so many bits, packed from the lowest bit.
[[nodiscard]] inline std::uint32_t code_at(std::uint32_t const* words,
                                           std::size_t bits,
                                           std::size_t number)
{
  std::uint32_t code = 0;
  for (std::size_t b = number * bits; b < (number + 1) * bits; ++b) {
    code |= (words[b / 32] >> (b % 32) & 1) << (b - number * bits);
  }
  return code;
}

//! @brief One chunk of a codebook.
struct coded_chunk {
  double scale;
  std::vector<std::uint32_t> codes;
};

//! @brief Chunk `index` of `count` words, whose codes come from the front and scales from the back.
//! @tparam Codec  Has a `quantizer_type` and a `chunk_size`, as two-shot codecs have.
template <class Codec>
[[nodiscard]] coded_chunk read_chunk(std::uint32_t const* words,
                                     std::size_t count,
                                     std::size_t index)
{
  coded_chunk out{static_cast<double>(std::bit_cast<float>(words[count - 1 - index])), {}};
  for (std::size_t p = 0; p < Codec::chunk_size; ++p) {
    out.codes.push_back(code_at(words, Codec::quantizer_type::bits, index * Codec::chunk_size + p));
  }
  return out;
}

//! @brief Chunk `index` of a shard of so many, whose scales come first, then zeros up to whole 16 bytes, then codes.
template <class Codec>
[[nodiscard]] coded_chunk read_of_shard(std::uint32_t const* part,
                                        std::size_t chunks,
                                        std::size_t index)
{
  coded_chunk out{static_cast<double>(std::bit_cast<float>(part[index])), {}};
  for (std::size_t p = 0; p < Codec::chunk_size; ++p) {
    out.codes.push_back(code_at(
      part + (chunks + 3) / 4 * 4, Codec::quantizer_type::bits, index * Codec::chunk_size + p));
  }
  return out;
}

//! @brief What the codes say, in wire order.
template <class Codec>
[[nodiscard]] std::vector<double> estimate(coded_chunk const& chunk)
{
  std::vector<double> out;
  for (std::uint32_t const code : chunk.codes) {
    out.push_back(chunk.scale * static_cast<double>(typename Codec::quantizer_type{}.decode(code)));
  }
  return out;
}

//! @brief Whether a chunk is the encoding of rotated values.
//!
//! The library rotates in float: at most log2(Size) roundings of partial sums, none above sqrt(Size) root mean squares; its
//! energy and products are sums of positive terms, 32 in a row and the rest in a tree. All of it is within 40 roundings of 16
//! root mean squares, or of the scale.
template <class Codec>
void check_encoding(mismatches& wrong, coded_chunk const& sent, std::vector<double> const& v)
{
  constexpr double epsilon = 0x1p-24;
  using quantizer          = typename Codec::quantizer_type;
  constexpr auto half      = std::uint32_t{1} << (quantizer::bits - 1);
  auto const level         = [](std::uint32_t cell) {
    return static_cast<double>(quantizer{}.decode(cell));
  };
  double energy = 0, product = 0;
  for (double const value : v) { energy += value * value; }
  double const root = std::sqrt(energy / Codec::chunk_size);
  for (std::size_t p = 0; p < v.size(); ++p) {
    double const value       = std::abs(v[p]) / root;
    std::uint32_t const cell = sent.codes[p] & (half - 1);
    auto const between       = [&](std::uint32_t k) {
      if constexpr (detail::has_places<quantizer>) {
        return static_cast<double>(quantizer::boundaries()[k]);
      } else {
        return (level(k) + level(k + 1)) / 2;
      }
    };
    double const begin  = cell == 0 ? 0 : between(cell - 1);
    double const end    = cell + 1 == half ? HUGE_VAL : between(cell);
    double const room   = 40 * 16 * epsilon;
    bool const negative = sent.codes[p] >= half;
    wrong.expect(value >= begin - room && value <= end + room, true, value, begin, end, p);
    wrong.expect(negative == (v[p] < 0) || value < room, true, value, p);
    product += std::abs(v[p]) * level(cell);
  }
  wrong.expect(std::abs(sent.scale * product / energy - 1) <= 200 * epsilon, true, sent.scale);
}

}  // namespace tersum::tests
