// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The rotation of a chunk in double: signs, and the Hadamard matrix by its definition or by its factors.

#pragma once

#include <tersum/block/chunk_order.hpp>
#include <tersum/random/philox.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tersum::tests {

//! @brief The Hadamard transform, unnormalized: N log N butterflies over the bits of the index, ascending.
[[nodiscard]] inline std::vector<double> hadamard_transform(std::vector<double> x)
{
  for (std::size_t stride = 1; stride < x.size(); stride *= 2) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if ((i & stride) != 0) { continue; }
      double const a = x[i], b = x[i | stride];
      x[i]          = a + b;
      x[i | stride] = a - b;
    }
  }
  return x;
}

//! @brief Signs and Hadamard matrix of one chunk by definition, unnormalized; rotated values in the order of the wire.
template <int Size>
class chunk_rotation {
 public:
  chunk_rotation(std::uint64_t chunk, std::uint64_t key)
  {
    for (std::size_t j = 0; j < Size; ++j) {
      std::uint32_t const word = sign_bits(chunk * (Size / 32) + order::sign_word(j), key);
      sign_[j]                 = (word >> order::sign_bit(j) & 1) == 0 ? 1.0 : -1.0;
    }
  }

  //! @param x  The chunk's `Size` coordinates.
  template <class T>
  [[nodiscard]] std::vector<double> forward(T const* x) const
  {
    std::vector<double> out(Size);
    for (std::size_t p = 0; p < Size; ++p) {
      std::size_t const i = order::coordinate(p);
      for (std::size_t j = 0; j < Size; ++j) {
        out[p] += entry(i, j) * sign_[j] * static_cast<double>(x[j]);
      }
    }
    return out;
  }

  [[nodiscard]] std::vector<double> backward(std::vector<double> const& y) const
  {
    std::vector<double> out(Size);
    for (std::size_t j = 0; j < Size; ++j) {
      for (std::size_t p = 0; p < Size; ++p) {
        out[j] += sign_[j] * entry(order::coordinate(p), j) * y[p];
      }
    }
    return out;
  }

 private:
  using order = chunk_order<Size>;

  static double entry(std::size_t i, std::size_t j)
  {
    return std::popcount(i & j) % 2 == 0 ? 1.0 : -1.0;
  }

  double sign_[Size];
};

}  // namespace tersum::tests
