// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which code a value gets and how sums of codes lie in words: what packed forms ask of a codec.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/quantize/packed_codes.hpp>

namespace tersum::inline v0::detail {

//! @brief True, or a sentence of the compiler that says why these codes and lanes do not fit.
template <quantizer Quantizer, reducer Reducer>
[[nodiscard]] constexpr bool suits_lanes() noexcept
{
  static_assert(
    Quantizer::bits >= 2 && Quantizer::bits <= 8 && Quantizer::max_level >= 1 &&
      Quantizer::max_level < 1 << (Quantizer::bits - 1),
    "tersum: a quantizer has 2 to 8 bits, and max_level fits them: 1 to 2^(bits - 1) - 1");
  static_assert(Quantizer::fraction_bits >= 0 && Quantizer::fraction_bits <= 8,
                "tersum: a quantizer is given eight random bits: fraction_bits is 0 to 8");
  static_assert(Reducer::lane_bits == 2 || Reducer::lane_bits == 4 || Reducer::lane_bits == 8 ||
                  Reducer::lane_bits == 16 || Reducer::lane_bits == 32,
                "tersum: a reducer's lane_bits are 2, 4, 8, 16 or 32");
  static_assert(Quantizer::bits <= Reducer::lane_bits,
                "tersum: the reducer's lanes are narrower than the quantizer's codes");
  static_assert(
    !requires { requires Reducer::code_bits != Quantizer::bits; },
    "tersum: the reducer's lanes are for a quantizer of other bits");
  static_assert(
    std::is_integral_v<typename Reducer::op::element> && !has_combine_at<typename Reducer::op>,
    "tersum: a reducer's op adds words of packed codes: its element is an integer, and it takes two of them "
    "wherever they lie");
  return true;
}

//! @brief The word whose codes are all zero.
template <class Quantizer, class Reducer>
inline constexpr std::uint32_t zero_word_of =
  Reducer::biased
    ? packed_codes<Reducer::lane_bits>::ones* static_cast<std::uint32_t>(Quantizer::max_level)
    : 0;

//! @brief Codes of chunks of `Size` coordinates, by the names that codecs give to their policies. Nothing is rotated or kept.
template <int Size, quantizer Quantizer, reducer Reducer>
struct coding {
  using quantizer_type = Quantizer;
  using reducer_type   = Reducer;
  using feedback_type  = no_feedback;
  using dither_type    = typename Quantizer::dither;
  using lanes          = packed_codes<Reducer::lane_bits>;

  static constexpr int chunk_size          = Size;
  static constexpr bool rotates_chunks     = false;
  static constexpr std::uint32_t zero_word = zero_word_of<Quantizer, Reducer>;

  static_assert(suits_lanes<Quantizer, Reducer>());

  struct coder_type {
    Quantizer quantizer{};
  };

  coder_type coder{};
};

}  // namespace tersum::inline v0::detail
