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
//! Zeros behind the last code that is not zero are not written. There are three ways for what is before it:
//!
//! - Behind runs: each code that is not zero is the number of zeros before it, its sign, and its magnitude less one in an
//!   exponential-Golomb code. The number is a one if there are none, and else a zero and one less in a Golomb-Rice code.
//! - In line, where codes that are not zero lie together: each code is its magnitude in a Golomb-Rice code and, unless that is
//!   zero, its sign. Behind a zero is the number of zeros that follow it, in a Golomb-Rice code.
//! - Where `runs` is `none`, hardly any code is zero: the same without such numbers, of all codes of the chunk.
struct rice_orders {
  static constexpr std::uint32_t none = 15;

  std::uint32_t runs       = 0;  //!< Below 15, or `none`.
  std::uint32_t magnitudes = 0;  //!< Below 32.
  std::uint32_t in_line    = 0;  //!< 1 or 0.

  friend constexpr bool operator==(rice_orders, rice_orders) noexcept = default;
};

//! @brief What the orders of a chunk follow from.
struct magnitude_counts {
  std::uint32_t some = 0;  //!< Codes that are not zero.
  std::uint32_t gaps = 0;  //!< Those with a zero before them.
  std::uint32_t end  = 0;  //!< One more than the place of the last of them.
  std::uint64_t sum  = 0;  //!< Of their magnitudes.
};

//! @brief The orders of a chunk for each way.
struct order_choices {
  std::uint32_t runs    = 0;  //!< Of numbers of zeros, behind runs and in line.
  std::uint32_t behind  = 0;  //!< Of magnitudes behind runs.
  std::uint32_t in_line = 0;  //!< Of magnitudes in line.
  std::uint32_t all     = 0;  //!< Of all magnitudes.
};

//! @brief A way, and how many bits the codes of a chunk take.
struct sized_orders {
  rice_orders orders;
  std::uint32_t bits = 0;
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

//! The orders of a chunk of `size` codes, not all of which are zero.
[[nodiscard]] TERSUM_INLINE constexpr order_choices find_orders(std::uint32_t size,
                                                                magnitude_counts const& counts)
{
  std::uint32_t const zeros = counts.end - counts.some;
  std::uint32_t const one   = rice_order(counts.some, counts.sum - counts.some);
  return {.runs    = counts.gaps > 0 ? rice_order(counts.gaps, zeros - counts.gaps) : 0u,
          .behind  = one > 0 ? one - 1 : 0,
          .in_line = rice_order(counts.some + counts.gaps, counts.sum),
          .all     = rice_order(size, counts.sum)};
}

//! @name Bits of the codes of a chunk
//! @param zeros  The sum of what numbers of zeros, each less one, are without their lowest `runs` bits.
//! @{
//! @param logarithms  The sum of floor(log2(magnitude - 1 + 2^behind)).
[[nodiscard]] TERSUM_INLINE constexpr sized_orders size_behind(magnitude_counts const& counts,
                                                               order_choices const& orders,
                                                               std::uint32_t zeros,
                                                               std::uint32_t logarithms)
{
  return {{orders.runs, orders.behind, 0},
          counts.gaps * (1 + orders.runs) + zeros + counts.some * (3 - orders.behind) +
            2 * logarithms};
}
//! @param quotients  The sum of what magnitudes are without their lowest `in_line` bits.
[[nodiscard]] TERSUM_INLINE constexpr sized_orders size_in_line(magnitude_counts const& counts,
                                                                order_choices const& orders,
                                                                std::uint32_t zeros,
                                                                std::uint32_t quotients)
{
  return {{orders.runs, orders.in_line, 1},
          counts.gaps * (2 + orders.runs + orders.in_line) + zeros +
            counts.some * (2 + orders.in_line) + quotients};
}
//! @param quotients  The sum of what magnitudes are without their lowest `all` bits.
[[nodiscard]] TERSUM_INLINE constexpr sized_orders size_of_all(std::uint32_t size,
                                                               magnitude_counts const& counts,
                                                               order_choices const& orders,
                                                               std::uint32_t quotients)
{
  return {{rice_orders::none, orders.all, 0}, size * (1 + orders.all) + counts.some + quotients};
}
//! @}

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
//! than it loses where codes have unlike lengths. Below .65 of a step a value is zero. The sum with a half would be rounded for
//! quotients from 2^23 on, which are whole.
//! @param inverse  One over the step; the quotient must be below 2^30.
TERSUM_EXEC_CHECK_DISABLE
template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE std::uint32_t code_magnitude(Arithmetic const&,
                                                         float value,
                                                         float inverse)
{
  float const magnitude = detail::bits_float(detail::float_bits(value) & 0x7fffffffu);
  float const quotient  = Arithmetic::multiply(magnitude, inverse);
  auto const nearest    = static_cast<std::int32_t>(Arithmetic::add(quotient, 0x1.fffffep-2f));
  return quotient < 0.65f ? 0u : static_cast<std::uint32_t>(nearest);
}

}  // namespace tersum::inline v0
