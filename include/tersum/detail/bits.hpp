// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Small helpers that are callable in device code without compiler flags.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0::detail {

//! `std::bit_cast`, which device code may not call.
template <class To, class From>
[[nodiscard]] TERSUM_INLINE constexpr To bit_cast(From const& from) noexcept
{
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t float_bits(float value) noexcept
{
  return __builtin_bit_cast(std::uint32_t, value);
}

[[nodiscard]] TERSUM_INLINE constexpr float bits_float(std::uint32_t bits) noexcept
{
  return __builtin_bit_cast(float, bits);
}

template <class T>
[[nodiscard]] TERSUM_INLINE constexpr T minimum(T a, T b) noexcept
{
  return b < a ? b : a;
}

template <class T>
[[nodiscard]] TERSUM_INLINE constexpr T maximum(T a, T b) noexcept
{
  return a < b ? b : a;
}

//! A count as the bound of an array: with -Wsign-conversion g++ warns of an int that depends on a template's parameter.
[[nodiscard]] TERSUM_INLINE constexpr std::size_t extent(int count) noexcept
{
  return static_cast<std::size_t>(count);
}

[[nodiscard]] TERSUM_INLINE constexpr bool is_finite(float value) noexcept
{
  return (float_bits(value) & 0x7f800000u) != 0x7f800000u;
}

//! @brief The hash of a sequence of numbers, from that of all but the last. It differs where the last number alone does.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept
{
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

//! The logarithm of a power of two; of other numbers, that of the next power.
[[nodiscard]] TERSUM_INLINE constexpr int log2_exact(std::uint64_t power) noexcept
{
  int log = 0;
  while ((std::uint64_t{1} << log) < power) { ++log; }
  return log;
}

[[nodiscard]] TERSUM_INLINE constexpr std::size_t round_up(std::size_t value,
                                                           std::size_t multiple) noexcept
{
  return (value + multiple - 1) / multiple * multiple;
}

[[nodiscard]] TERSUM_INLINE constexpr std::uint64_t divide_up(std::uint64_t count,
                                                              std::uint64_t by) noexcept
{
  return count / by + (count % by != 0 ? 1 : 0);
}

//! Whether two arrays of so many bytes have none in common.
[[nodiscard]] inline bool are_apart(void const* a,
                                    std::size_t a_bytes,
                                    void const* b,
                                    std::size_t b_bytes) noexcept
{
  auto const first  = reinterpret_cast<std::uintptr_t>(a);
  auto const second = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes == 0 || b_bytes == 0 || first + a_bytes <= second || second + b_bytes <= first;
}

//! The eight low bits of `rank` in reverse order.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t reverse_byte(std::uint32_t rank) noexcept
{
  std::uint32_t const pairs = (rank & 0x55u) << 1 | (rank >> 1 & 0x55u);
  std::uint32_t const fours = (pairs & 0x33u) << 2 | (pairs >> 2 & 0x33u);
  return (fours & 0x0fu) << 4 | fours >> 4;
}

}  // namespace tersum::inline v0::detail
