// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Storage types for 16-bit floating point without CUDA, and the 16-byte word of vector accesses.

#pragma once

#include <tersum/config.hpp>
#include <tersum/description.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

static_assert(std::endian::native == std::endian::little,
              "tersum: the wire format is little-endian and so must be the machine");

struct half;
struct bfloat16;
[[nodiscard]] TERSUM_HOST_DEVICE constexpr half to_half(float value) noexcept;
[[nodiscard]] TERSUM_HOST_DEVICE constexpr bfloat16 to_bfloat16(float value) noexcept;

//! @brief IEEE binary16, one 16-bit word with the layout of `__half`. Storage only: convert to compute.
struct half {
  std::uint16_t bits;
  constexpr description describe() const { return {"half"}; }

  half() = default;
  //! `to_half(value)`. A number of another type does not convert: neither its bits nor its value would be meant for certain.
  template <std::same_as<float> Float>
  TERSUM_HOST_DEVICE explicit constexpr half(Float value) noexcept : bits(to_half(value).bits)
  {
  }
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr half from_bits(std::uint16_t bits) noexcept
  {
    half made{};
    made.bits = bits;
    return made;
  }

  friend constexpr bool operator==(half, half) noexcept = default;
};

//! @brief bfloat16, one 16-bit word with the layout of `__nv_bfloat16`. Storage only: convert to compute.
struct bfloat16 {
  std::uint16_t bits;
  constexpr description describe() const { return {"bfloat16"}; }

  bfloat16() = default;
  //! `to_bfloat16(value)`. A number of another type does not convert: neither its bits nor its value would be meant for certain.
  template <std::same_as<float> Float>
  TERSUM_HOST_DEVICE explicit constexpr bfloat16(Float value) noexcept
    : bits(to_bfloat16(value).bits)
  {
  }
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept
  {
    bfloat16 made{};
    made.bits = bits;
    return made;
  }

  friend constexpr bool operator==(bfloat16, bfloat16) noexcept = default;
};

//! Sixteen bytes, one vector access.
struct alignas(16) word4 {
  std::uint32_t x, y, z, w;
  friend constexpr bool operator==(word4 const&, word4 const&) noexcept = default;
};

//! The element types that a gradient may have.
template <class T>
concept gradient_element =
  std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

//! @name Conversions
//! Exact towards float; towards 16 bits round to nearest, ties to even, as the CUDA intrinsics do. Every NaN becomes
//! the quiet NaN 0x7fff (a bfloat16 NaN keeps its payload on the way to float).
//! @{
[[nodiscard]] TERSUM_HOST_DEVICE constexpr float to_float(float value) noexcept { return value; }

[[nodiscard]] TERSUM_HOST_DEVICE constexpr float to_float(half value) noexcept
{
  std::uint32_t const sign      = (value.bits & 0x8000u) << 16;
  std::uint32_t const magnitude = value.bits & 0x7fffu;
  if (magnitude > 0x7c00u) { return detail::bit_cast<float>(0x7fffffffu); }
  if (magnitude == 0x7c00u) { return detail::bit_cast<float>(sign | 0x7f800000u); }
  // A subnormal half becomes 2^-14 plus itself, from which 2^-14 is subtracted again. So no operand and no result is a
  // subnormal float, which a caller may have set to be flushed.
  std::uint32_t const bits = magnitude << 13;
  float const scaled = magnitude < 0x0400u ? detail::bit_cast<float>(bits + 0x38800000u) - 0x1p-14f
                                           : detail::bit_cast<float>(bits + 0x38000000u);
  return detail::bit_cast<float>(detail::bit_cast<std::uint32_t>(scaled) | sign);
}

[[nodiscard]] TERSUM_HOST_DEVICE constexpr float to_float(bfloat16 value) noexcept
{
  return detail::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

[[nodiscard]] TERSUM_HOST_DEVICE constexpr half to_half(float value) noexcept
{
  std::uint32_t const bits      = detail::bit_cast<std::uint32_t>(value);
  std::uint32_t const sign      = (bits >> 16) & 0x8000u;
  std::uint32_t const magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return half::from_bits(0x7fffu); }
  if (magnitude >= 0x477ff000u) {
    return half::from_bits(static_cast<std::uint16_t>(sign | 0x7c00u));
  }
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 leaves the result, rounded to even, in the low bits of the mantissa.
    float const shifted = detail::bit_cast<float>(magnitude) + 0.5f;
    return half::from_bits(
      static_cast<std::uint16_t>(sign | (detail::bit_cast<std::uint32_t>(shifted) - 0x3f000000u)));
  }
  std::uint32_t const rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return half::from_bits(static_cast<std::uint16_t>(sign | (rounded >> 13)));
}

[[nodiscard]] TERSUM_HOST_DEVICE constexpr bfloat16 to_bfloat16(float value) noexcept
{
  std::uint32_t const bits = detail::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return bfloat16::from_bits(0x7fffu); }
  return bfloat16::from_bits(
    static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16));
}

//! @brief The smallest bfloat16 that is not below a value that is neither negative nor NaN.
[[nodiscard]] TERSUM_HOST_DEVICE constexpr bfloat16 to_bfloat16_upwards(float value) noexcept
{
  return bfloat16::from_bits(
    static_cast<std::uint16_t>((detail::bit_cast<std::uint32_t>(value) + 0xffffu) >> 16));
}

//! @brief Converts to any gradient element.
template <gradient_element T>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr T from_float(float value) noexcept
{
  if constexpr (std::is_same_v<T, half>) {
    return to_half(value);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return to_bfloat16(value);
  } else {
    return value;
  }
}
//! @}

namespace detail {

//! @brief Magnitudes from which feedback takes a gradient for one that is not finite when it is sent as `T`. Below, what is beyond
//! `largest_summand` stays in the residual for the next steps.
template <gradient_element T>
inline constexpr float sendable_below = std::is_same_v<T, half> ? 0x1p20f
                                        : std::is_same_v<T, bfloat16>
                                          ? 0x1p127f
                                          : std::numeric_limits<float>::infinity();

//! @brief The largest magnitude of a summand with which no sum of `world` of them leaves `T`, in any order of additions.
//!
//! Of up to 1024 halves it is 65504 / world, rounded down to so few bits that all of its multiples up to `world` are
//! halves. Rounding is monotonic, so that no partial sum is above the multiple of its number of summands. Otherwise it is a
//! power of two. A world that a plan refuses, of less than one rank, counts as one.
template <gradient_element T>
[[nodiscard]] constexpr float largest_summand(int world) noexcept
{
  auto const ranks = static_cast<unsigned>(world < 1 ? 1 : world);
  if (std::is_same_v<T, half> && ranks <= 1024) {
    unsigned const most   = 65504u / ranks,
                   bits   = 11u - static_cast<unsigned>(std::bit_width(ranks - 1));
    unsigned const width  = static_cast<unsigned>(std::bit_width(most));
    unsigned const unused = width > bits ? width - bits : 0;
    return static_cast<float>(most >> unused << unused);
  }
  constexpr float largest = std::is_same_v<T, half> ? 0x1p15f : 0x1p127f;
  return largest / static_cast<float>(std::bit_ceil(ranks));
}

template <gradient_element T>
[[nodiscard]] TERSUM_HOST_DEVICE inline bool is_sendable(float value) noexcept
{
  return ::fabsf(value) < sendable_below<T>;
}

//! @brief `from_float` for a decoded mean. The mean of halves is at most 65504, although what is decoded may lie beyond it by
//! the error of the codes. So the largest half is nearer to it than infinity. NaN stays NaN.
template <gradient_element T>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr T finite_from_float(float value) noexcept
{
  if (std::is_same_v<T, half>) {
    constexpr float largest = 65504.0f;
    if (value > largest) { value = largest; }
    if (value < -largest) { value = -largest; }
  }
  return from_float<T>(value);
}

//! @brief The same for what a codec with feedback sends, whose residual keeps the rest: a NaN where nothing can be sent.
template <gradient_element T>
[[nodiscard]] TERSUM_HOST_DEVICE inline T sendable_from_float(float value) noexcept
{
  return is_sendable<T>(value) ? finite_from_float<T>(value)
                               : from_float<T>(bit_cast<float>(0x7fffffffu));
}

//! @brief `from_float` for a summand: within `largest` at either sign. NaN stays NaN.
template <gradient_element T>
[[nodiscard]] TERSUM_HOST_DEVICE inline T bounded_from_float(float value, float largest) noexcept
{
  if (value > largest) { value = largest; }
  if (value < -largest) { value = -largest; }
  return from_float<T>(value);
}

}  // namespace detail

}  // namespace tersum::inline v0
