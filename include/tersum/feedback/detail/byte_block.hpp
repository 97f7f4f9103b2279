// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Blocks of `byte_chunk` from floats and back, the same on the CPU and in kernels.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/feedback/byte_blocks.hpp>
#include <tersum/metric/detail/scales.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! A block without a larger magnitude is kept as zeros, so that no step is subnormal and its inverse is finite.
inline constexpr float least_kept_magnitude = 0x1p-100f;

//! Larger magnitudes that are finite are kept as this one: 127 times 2^121.
inline constexpr float largest_kept_magnitude = 0x1.fcp127f;

//! @brief One block of a `byte_chunk`.
struct byte_block {
  std::uint32_t words[8];
  float step;
};

//! @brief The block that is kept of 32 floats. Each is rounded to one of the multiples of the step beside it, the nearer the
//! likelier, so that it is the expected one within 2^-16 of the step. If one is not finite, the step is not either, and codes are zeros.
//! @param v        Eight neighbours of each quarter of the chunk.
//! @param draw     That of the first one, as `first_kept_draw` gives those of a chunk.
//! @param quarter  From the first coordinate of a quarter to that of the next.
template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE byte_block
keep_block(Arithmetic const&, float const (&v)[32], std::uint32_t draw, std::uint32_t quarter)
{
  constexpr int unit    = 1 << 16;     // of a step in a magnitude
  constexpr int largest = 127 * unit;  // below 2^24
  std::uint32_t bits    = 0;
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) { bits = maximum(bits, float_bits(v[i]) & 0x7fffffffu); }
  float const most  = minimum(bits_float(bits), largest_kept_magnitude);
  bool const coded  = bits < 0x7f800000u && most >= least_kept_magnitude;
  bool const finite = bits < 0x7f800000u;
  float const units = coded ? Arithmetic::divide(static_cast<float>(largest), most) : 0.0f;
  byte_block block{};
  block.step = finite ? 0.0f : bits_float(bits);
  if (coded) { block.step = Arithmetic::divide(most, 127.0f); }
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    auto const at   = static_cast<std::uint32_t>(i / 8) * quarter + static_cast<unsigned>(i % 8);
    auto const part = static_cast<int>((draw + at * draw_stride) & 0xffffu);
    std::uint32_t const b = float_bits(v[i]);
    float const magnitude = coded ? bits_float(b & 0x7fffffffu) : 0.0f;
    // Two roundings may lift the largest magnitude by less than one.
    int const place = minimum(static_cast<int>(Arithmetic::multiply(magnitude, units)), largest);
    int const code  = (place + part) >> 16;
    int const whole = b >> 31 != 0 ? -code : code;
    block.words[i / 4] |= (static_cast<std::uint32_t>(whole) & 255u) << (i % 4 * 8);
  }
  return block;
}

//! @brief Value i of the 32 that a block keeps.
template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE float kept_of_block(Arithmetic const&, byte_block const& block, int i)
{
  auto const code = static_cast<std::int8_t>(block.words[i / 4] >> (i % 4 * 8) & 255u);
  return Arithmetic::multiply(static_cast<float>(code), block.step);
}

//! @brief Writes what is kept of a chunk. Coordinates that it does not have are zeros.
//! @param draw  As `first_kept_draw` gives it.
template <class Arithmetic, int Size>
void keep_chunk(Arithmetic const& math, float const* v, std::uint32_t draw, byte_chunk<Size>& to)
{
  for (int t = 0; t < Size / 32; ++t) {
    float own[32];
    for (int r = 0; r < 4; ++r) { std::copy_n(v + r * (Size / 4) + 8 * t, 8, own + 8 * r); }
    byte_block const block = keep_block(
      math, own, draw + 8 * static_cast<std::uint32_t>(t) * draw_stride, std::uint32_t{Size / 4});
    std::copy_n(block.words, 8, to.codes + 8 * t);
    to.steps[t] = block.step;
  }
}

//! @brief Reads what is kept of a chunk.
template <class Arithmetic, int Size>
void kept_of_chunk(Arithmetic const& math, byte_chunk<Size> const& from, float* v)
{
  for (int t = 0; t < Size / 32; ++t) {
    byte_block block;
    std::copy_n(from.codes + 8 * t, 8, block.words);
    block.step = from.steps[t];
    for (int i = 0; i < 32; ++i) {
      v[i / 8 * (Size / 4) + 8 * t + i % 8] = kept_of_block(math, block, i);
    }
  }
}

}  // namespace tersum::inline v0::detail
