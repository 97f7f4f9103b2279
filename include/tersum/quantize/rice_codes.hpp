// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How the integers of a chunk are coded in bits of unlike number: zeros as runs, and everything in Golomb codes.
//! `bit_streams.hpp` writes and reads them.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <bit>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief How the codes of a chunk are written.
//!
//! Under order k a number is as many zeros as it has multiples of 2^k, a one, and the k bits that remain, from the lowest on:
//! Golomb-Rice (Golomb 1966, Rice 1979). Exponential-Golomb codes (Teuhola 1978) of order k are of the number plus 2^k: a zero
//! for each of its bits beyond k + 1, a one, and its bits but the highest.
//!
//! Each code that is not zero is the number of zeros before it, its sign, and its magnitude less one in an exponential-Golomb
//! code; zeros behind the last are not written. Where `runs` is `none`, hardly any code is zero: each is its magnitude in a
//! Golomb-Rice code and, unless that is zero, its sign.
struct rice_orders {
  static constexpr std::uint32_t none = 15;

  std::uint32_t runs       = 0;  //!< Below 15, or `none`.
  std::uint32_t magnitudes = 0;  //!< Below 32.

  friend constexpr bool operator==(rice_orders, rice_orders) noexcept = default;
};

//! @brief What the orders of a chunk follow from.
struct magnitude_counts {
  std::uint32_t some = 0;  //!< Codes that are not zero.
  std::uint32_t end  = 0;  //!< One more than the place of the last of them.
  std::uint64_t sum  = 0;  //!< Of their magnitudes.
};

//! The order under which `count` numbers of this sum are shortest, if they are distributed geometrically (Kiely 2004, with .481
//! as 62/129).
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t rice_order(std::uint32_t count,
                                                               std::uint64_t sum)
{
  std::uint64_t const limit = 31 * (2 * sum + count);
  std::uint64_t reach       = std::uint64_t{count} * 129;
  std::uint32_t order       = 0;
#if !defined(__CUDA_ARCH__)
  // The loop would stop here at the earliest.
  auto const longer =
    static_cast<int>(std::bit_width(limit)) - static_cast<int>(std::bit_width(reach));
  if (longer > 0) {
    order = static_cast<std::uint32_t>(longer > 30 ? 30 : longer);
    reach <<= order;
  }
#endif
  while (reach <= limit && order < 30) {
    reach *= 2;
    ++order;
  }
  return order;
}

//! The orders of a chunk of `size` codes, not all of which are zero, by what both ways are expected to take.
[[nodiscard]] TERSUM_INLINE constexpr rice_orders choose_orders(std::uint32_t size,
                                                                magnitude_counts const& counts)
{
  std::uint32_t const some   = counts.some;
  std::uint32_t const zeros  = counts.end - some;
  std::uint64_t const beyond = counts.sum - some;
  std::uint32_t const runs   = rice_order(some, zeros);
  std::uint32_t const one    = rice_order(some, beyond);
  std::uint32_t const all    = rice_order(size, counts.sum);
  std::uint64_t const as_runs =
    std::uint64_t{some} * (2 + runs + one) + (zeros >> runs) + (beyond >> one);
  std::uint64_t const as_all = std::uint64_t{size} * (1 + all) + (counts.sum >> all);
  if (as_all < as_runs) { return {rice_orders::none, all}; }
  return {runs, one > 0 ? one - 1 : 0};
}

//! One less than the bits of a number above zero and below 2^31.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t floor_log2(std::uint32_t number)
{
  // A float holds 24 bits.
  std::uint32_t const below = number >> 24 != 0 ? 8u : 0u;
  return (detail::float_bits(static_cast<float>(number >> below)) >> 23) - 127 + below;
}

//! Bits of a number in an exponential-Golomb code; both together are below 2^31.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t exponential_bits(std::uint32_t number,
                                                                     std::uint32_t order)
{
  return 2 * floor_log2(number + (1u << order)) + 1 - order;
}

//! Bits of a number in a Golomb-Rice code.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t rice_bits(std::uint32_t number,
                                                              std::uint32_t order)
{
  return (number >> order) + 1 + order;
}

//! @brief The magnitude of the code of a value: that of the nearest multiple of a step but for a dead zone, which saves more
//! than it loses where codes have unlike lengths. From .6 of a step on a value counts as the next one.
//! @param inverse  One over the step; the quotient must be below 2^30.
TERSUM_EXEC_CHECK_DISABLE
template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE std::uint32_t code_magnitude(Arithmetic const&,
                                                         float value,
                                                         float inverse)
{
  float const magnitude = detail::bits_float(detail::float_bits(value) & 0x7fffffffu);
  float const quotient  = Arithmetic::multiply(magnitude, inverse);
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(Arithmetic::add(quotient, 0.4f)));
}

}  // namespace tersum::inline v0
