// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks in codes with scales of their own, read bit by bit as the wire format has them.

#pragma once

#include <bit>
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
//! @tparam Codec  Has a `quantizer_type` and a `chunk_size`, as two-shot codecs and what hops do have.
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

}  // namespace tersum::tests
