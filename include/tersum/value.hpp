// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What policies compute with: a value is a float, or a vector of floats on a CPU, and these functions exist for both.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

//! Before `template` of a function of values, for host and device: of vectors it calls functions that only the host has.
#define TERSUM_OF_VALUES TERSUM_EXEC_CHECK_DISABLE

namespace tersum::inline v0 {

//! @brief The words and signed integers of 32 bits that belong to a type of values. The vectors of each instruction set have theirs.
//!
//! Both have the operators of integers, and what is compared goes into `select`. Products of floats are not to be added without `fma`.
//! Variables are `auto`, since nvcc 13.0 takes no named type of vectors inside of a function that is for devices too.
template <class Value>
struct value_parts {
  using words    = typename Value::own_words;
  using integers = typename Value::own_integers;

  static constexpr int comparisons = Value::comparisons;
  static constexpr int unplaced    = Value::unplaced;
};

template <>
struct value_parts<float> {
  using words    = std::uint32_t;
  using integers = std::int32_t;
  //! Where as many comparisons are no dearer than to look a number up in two tables.
  static constexpr int comparisons = 3;
  //! So many comparisons cost no more than to look a level up by its place.
  static constexpr int unplaced = 255;
};

//! What bits of these values are counted in: words without a sign, and with one. Each has as many elements as the value.
//! @{
template <class Value>
using words_of = typename value_parts<Value>::words;

template <class Value>
using integers_of = typename value_parts<Value>::integers;
//! @}

//! @name Functions of values
//! Those of vectors have the same names, and are found by their arguments: call them without `tersum::`, after `using tersum::select`.
//! @{
//! The bits of a float, and the float of bits.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t to_bits(float value) noexcept
{
  return detail::float_bits(value);
}
[[nodiscard]] TERSUM_INLINE constexpr float from_bits(std::uint32_t bits) noexcept
{
  return detail::bits_float(bits);
}

//! The same bits with a sign, and without one.
[[nodiscard]] TERSUM_INLINE constexpr std::int32_t to_integers(std::uint32_t words) noexcept
{
  return static_cast<std::int32_t>(words);
}
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t to_words(std::int32_t integers) noexcept
{
  return static_cast<std::uint32_t>(integers);
}

//! One of two, by what a comparison gave.
template <class T>
[[nodiscard]] TERSUM_INLINE constexpr T select(bool condition, T chosen, T other) noexcept
{
  return condition ? chosen : other;
}

//! 1 where a comparison held, 0 elsewhere.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t one_if(bool condition) noexcept
{
  return condition ? 1u : 0u;
}

//! Whether a comparison held everywhere.
[[nodiscard]] TERSUM_INLINE constexpr bool all(bool condition) noexcept { return condition; }

//! The smaller and the larger of two; on a host the second where they cannot be compared.
template <class T>
[[nodiscard]] TERSUM_INLINE constexpr T smaller(T a, T b) noexcept
{
#if defined(__CUDA_ARCH__)
  return ::min(a, b);
#else
  return a < b ? a : b;
#endif
}
template <class T>
[[nodiscard]] TERSUM_INLINE constexpr T larger(T a, T b) noexcept
{
#if defined(__CUDA_ARCH__)
  return ::max(a, b);
#else
  return a > b ? a : b;
#endif
}

//! @brief The smaller of two that are not negative, and the larger of two that are not both negative. As integers: devices
//! then take three at once.
[[nodiscard]] TERSUM_INLINE constexpr float smaller_size(float a, float b) noexcept
{
  return from_bits(to_words(smaller(to_integers(to_bits(a)), to_integers(to_bits(b)))));
}
[[nodiscard]] TERSUM_INLINE constexpr float larger_size(float a, float b) noexcept
{
  return from_bits(to_words(larger(to_integers(to_bits(a)), to_integers(to_bits(b)))));
}

//! Towards zero.
[[nodiscard]] TERSUM_INLINE constexpr std::int32_t truncate(float value) noexcept
{
  return static_cast<std::int32_t>(value);
}

//! a * b + c with one rounding.
[[nodiscard]] TERSUM_INLINE float fma(float a, float b, float c) noexcept
{
  return ::fmaf(a, b, c);
}

//! @brief 1.5 2^23 + Offset + the integer nearest to value * scale, ties to even, as the bits of a float: that integer is
//! in the low bits. A product of 2^22 or more is a larger integer with a sign, one of -2^22 or less a smaller one, as far
//! as they do not reach 2^31; what is not a number gives any.
//! @tparam Offset  An even number.
template <int Offset>
[[nodiscard]] TERSUM_INLINE std::uint32_t rounded_bits(float value, float scale) noexcept
{
  return to_bits(::fmaf(value, scale, 12582912.0f + Offset));
}

//! @brief table[number], of a table of `Count` floats, a power of two.
template <int Count>
[[nodiscard]] TERSUM_INLINE constexpr float look_up(float const* table,
                                                    std::uint32_t number) noexcept
{
  return table[number];
}

//! A function of one float or word, of each of a value, where it is no function of values.
template <class Function, class T>
requires(std::is_arithmetic_v<T>) [[nodiscard]] TERSUM_INLINE
  auto by_lanes(Function const& function, T value) noexcept
{
  return function(value);
}
//! @}

//! The magnitude of a value.
TERSUM_OF_VALUES
template <class Value>
[[nodiscard]] TERSUM_INLINE constexpr Value magnitude_of(Value const& value) noexcept
{
  return from_bits(to_bits(value) & 0x7fffffffu);
}

}  // namespace tersum::inline v0
