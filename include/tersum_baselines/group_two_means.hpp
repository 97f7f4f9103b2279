// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One bit for each coordinate, and two means for each group: 1-bit SGD.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/dither.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief Signs, of which the values from zero on get their mean, and those below it theirs: 1-bit SGD, which needs `error_feedback`.
//!
//! The chunk's largest magnitude M travels as a float, and two bfloat16 in a word for each group: its means over M, rounded to the
//! nearest; that of no values is zero. A code c stands for (a M) + c ((b - a) M) by fused multiply-add, a being the mean below zero. Sums for
//! means are made of eight neighbours in order, then of neighbouring eights pairwise. All else is as under `group_absmax`. There is no rotation. In the source a group is a column of a matrix. Source: Seide
//! et al., 1-Bit Stochastic Gradient Descent and its Application to Data-Parallel Distributed Training of Speech DNNs
//! (Interspeech'14).
//! @tparam Block  Coordinates of a group, 16 to 128; a chunk has 4 of them or a multiple.
template <int Block>
struct group_two_means {
  static_assert(Block == 16 || Block == 32 || Block == 64 || Block == 128,
                "tersum: group_two_means<Block> has blocks of 16, 32, 64 or 128");
  constexpr description describe() const { return {"group_two_means", Block}; }

  using dither                    = no_dither;
  static constexpr int bits       = 1;      //!< Width of a code.
  static constexpr int block      = Block;  //!< Coordinates with two means.
  static constexpr bool unbiased  = false;
  static constexpr int block_bits = 32;  //!< Of two means.
  static constexpr int fields     = 4;  //!< The sums of both signs, and how many there are of each.

  //! What is gathered of a value.
  TERSUM_INLINE static void first(float value, float (&field)[detail::extent(fields)]) noexcept
  {
    bool const below = value < 0;
    field[0]         = below ? value : 0.0f;
    field[1]         = below ? 0.0f : value;
    field[2]         = below ? 1.0f : 0.0f;
    field[3]         = below ? 0.0f : 1.0f;
  }
  template <class Arithmetic>
  TERSUM_INLINE static void join(Arithmetic const&,
                                 float const (&other)[fields],
                                 float (&field)[detail::extent(fields)]) noexcept
  {
    TERSUM_UNROLL
    for (int i = 0; i < fields; ++i) { field[i] = Arithmetic::add(field[i], other[i]); }
  }
  //! The two bfloat16 of what was gathered, that of the values below zero in the low half. `whole` is the chunk's largest
  //! magnitude.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_INLINE static std::uint32_t ends(Arithmetic const&,
                                                        float const (&field)[fields],
                                                        float whole) noexcept
  {
    auto const mean = [&](float sum, float count) {
      float const x = Arithmetic::divide(Arithmetic::divide(sum, count > 0 ? count : 1.0f), whole);
      std::uint32_t const bits = detail::float_bits(x);
      return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    };
    return mean(field[0], field[2]) | mean(field[1], field[3]) << 16;
  }
  //! What a code stands for, by the word of its group. `whole` is the chunk's scale times some factor.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_INLINE static float value(Arithmetic const&,
                                                 std::uint32_t ends,
                                                 float whole,
                                                 std::uint32_t code) noexcept
  {
    float const low    = detail::bits_float(ends << 16);
    float const high   = detail::bits_float(ends & 0xffff0000u);
    float const begin  = Arithmetic::multiply(low, whole);
    float const length = Arithmetic::multiply(Arithmetic::subtract(high, low), whole);
    return Arithmetic::fma(static_cast<float>(code), length, begin);
  }
};

static_assert(block_quantizer<group_two_means<128>>, "tersum: must model tersum::block_quantizer");

}  // namespace tersum::inline v0

#include <tersum_baselines/detail/block_two_means.hpp>
#include <tersum_baselines/detail/cpu_two_means.hpp>
