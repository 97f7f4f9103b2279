// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Philox4x32 written from the paper in another way: products by halves, round keys in closed form.

#pragma once

#include <array>
#include <cstdint>

namespace tersum::tests {

//! The upper half of a 32 x 32 bit product, by schoolbook multiplication of 16-bit digits.
[[nodiscard]] inline std::uint32_t multiply_high(std::uint32_t a, std::uint32_t b)
{
  std::uint32_t const a0 = a & 0xffffu, a1 = a >> 16, b0 = b & 0xffffu, b1 = b >> 16;
  std::uint32_t const low    = a0 * b0;
  std::uint32_t const middle = a1 * b0 + (low >> 16);
  std::uint32_t const cross  = a0 * b1 + (middle & 0xffffu);
  return a1 * b1 + (middle >> 16) + (cross >> 16);
}

//! Philox4x32 of Salmon et al. (SC'11), figure 4: counter and result as words 0 to 3, key as words 0 and 1.
[[nodiscard]] inline std::array<std::uint32_t, 4> reference_philox(std::array<std::uint32_t, 4> x,
                                                                   std::array<std::uint32_t, 2> key,
                                                                   std::uint32_t rounds)
{
  std::uint32_t const left = 0xd2511f53u, right = 0xcd9e8d57u;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::uint32_t const key_0 = key[0] + round * 0x9e3779b9u;  // the golden ratio
    std::uint32_t const key_1 = key[1] + round * 0xbb67ae85u;  // sqrt(3) - 1
    x                         = {multiply_high(right, x[2]) ^ x[1] ^ key_0,
                                 right * x[2],
                                 multiply_high(left, x[0]) ^ x[3] ^ key_1,
                                 left * x[0]};
  }
  return x;
}

}  // namespace tersum::tests
