// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The one rounding that every uniform quantizer shares, in a form that CPU and GPU compute alike bit for bit, and where its
//! randomness comes from: eight bits per coordinate, independent or stratified over the ranks.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0 {

//! @brief Rounds to a grid of integers in -Limit .. Limit whose steps are 2^FractionBits of its own units.
//!
//! One fused multiply-add with 1.5 2^23 leaves round-to-nearest-even(value * scale) in the low bits of the float; the
//! rest is integers, so no compiler can contract it into something else.
template <int Limit, int FractionBits>
struct uniform_grid {
  //! Bits of a float that stand for the lowest code. They have zeros where the code lies, so need not be subtracted.
  static constexpr std::uint32_t low = 0x4b400000;

  //! @brief value * scale / 2^FractionBits rounded up or down, from the lowest code on: down if the fraction plus `random` /
  //! 2^FractionBits is less than one, where `random` is below 2^FractionBits. Below that code lies the fraction, above it `low`.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE static words_of<Value> field(Value const& value,
                                                           float scale,
                                                           words_of<Value> const& random) noexcept
  {
    constexpr int unit          = 1 << FractionBits;
    constexpr std::uint32_t odd = Limit * unit % 2;  // ties go to even codes
    auto const sum = to_integers(rounded_bits<Limit * unit + odd>(value, scale) + (random - odd));
    // A float above 2^24 has larger bits and gives the highest code, one below zero the lowest, NaN either.
    constexpr auto lowest = static_cast<std::int32_t>(low);
    return to_words(larger(smaller(sum, lowest + 2 * Limit * unit + unit - 1), lowest));
  }

  //! The code of that.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE static integers_of<Value> round(
    Value const& value, float scale, words_of<Value> const& random) noexcept
  {
    return to_integers((field(value, scale, random) - low) >> FractionBits) - Limit;
  }
};

//! @brief The code of a value on a `uniform_grid`.
TERSUM_OF_VALUES
template <int Limit, int FractionBits, class Value>
[[nodiscard]] TERSUM_INLINE integers_of<Value> round_to_grid(Value const& value,
                                                             float scale,
                                                             words_of<Value> const& random) noexcept
{
  return uniform_grid<Limit, FractionBits>::round(value, scale, random);
}

//! @brief Every rank draws its own bytes.
//! @tparam Rounds  Rounds of Philox4x32, 1 to 16.
template <int Rounds = 7>
struct independent_dither {
  static constexpr int rounds = Rounds;
  constexpr description describe() const { return {"independent_dither", Rounds}; }

  //! @brief The counter of a draw of sixteen bytes. Byte p mod 16 of draw p div 16 rounds the coordinate at wire position
  //! p, counted over the whole payload. No two of (block < 2^48, step < 2^48, rank < 65535) have the same counter.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr philox_block counter(
    std::uint64_t block, dither_key const& key) noexcept
  {
    return {{static_cast<std::uint32_t>(block),
             static_cast<std::uint32_t>(key.step),
             static_cast<std::uint32_t>(block >> 32) | (key.rank + 1) << 16,
             static_cast<std::uint32_t>(key.step >> 32)}};
  }

  //! What the bytes of a draw are xored with.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint32_t mask(dither_key const&) noexcept
  {
    return 0;
  }
};

//! @brief The ranks share one draw, and each xors it with its bit-reversed rank. So the roundings of one coordinate are spread
//! evenly over the ranks (van der Corput), which halves the error of the sum at no cost. Each rank's bytes stay uniform.
//!
//! The spread is exact for up to 256 ranks; above that ranks repeat modulo 256. After the correlated quantization of
//! Suresh et al. (ICML'22).
//! @tparam Rounds  Rounds of Philox4x32, 1 to 16.
template <int Rounds = 7>
struct stratified_dither {
  static constexpr int rounds = Rounds;
  constexpr description describe() const { return {"stratified_dither", Rounds}; }

  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr philox_block counter(
    std::uint64_t block, dither_key const& key) noexcept
  {
    return {{static_cast<std::uint32_t>(block),
             static_cast<std::uint32_t>(key.step),
             static_cast<std::uint32_t>(block >> 32),
             static_cast<std::uint32_t>(key.step >> 32)}};
  }

  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr std::uint32_t mask(
    dither_key const& key) noexcept
  {
    return detail::reverse_byte(key.rank) * 0x01010101u;
  }
};

//! @brief No randomness: for quantizers that round to nearest.
struct no_dither {
  static constexpr int rounds = 0;
  constexpr description describe() const { return {"no_dither"}; }
};

using independent = independent_dither<>;  //!< Independent dither, 7 rounds.
using stratified  = stratified_dither<>;   //!< Stratified dither, 7 rounds.

static_assert(dither_source<independent>, "tersum: must model tersum::dither_source");
static_assert(dither_source<stratified>, "tersum: must model tersum::dither_source");
static_assert(dither_source<no_dither>, "tersum: must model tersum::dither_source");

//! @brief The byte that rounds the coordinate at a wire position, as the kernels draw it sixteen at a time.
template <class Dither>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t dither_byte(std::uint64_t position,
                                                                     dither_key const& key) noexcept
{
  philox_block const draw =
    philox4x32<Dither::rounds>(Dither::counter(position / 16, key), key.seed);
  int const byte = static_cast<int>(position % 16);
  return ((draw.word[byte / 4] ^ Dither::mask(key)) >> (8 * (byte % 4))) & 0xffu;
}

namespace detail {

//! The word that a rank's random words are xored with.
template <class Dither>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t dither_mask(dither_key const& key) noexcept
{
  if constexpr (Dither::rounds > 0) { return Dither::mask(key); }
  return 0;
}

//! The dither of a quantizer, which is `no_dither` for codebooks.
template <class Quantizer>
struct dither_of {
  using type = no_dither;
};

template <class Quantizer>
requires requires { typename Quantizer::dither; }
struct dither_of<Quantizer> {
  using type = typename Quantizer::dither;
};

//! @brief The dither of an owner's second encoding. It is independent of those of the ranks, since there is only one mean.
template <class Dither>
struct second_dither_of {
  using type = independent_dither<Dither::rounds>;
};

template <>
struct second_dither_of<no_dither> {
  using type = no_dither;
};

inline constexpr std::uint32_t second_rank =
  65534;  //!< Whose dither it is: no rank has this number.

}  // namespace detail

}  // namespace tersum::inline v0
