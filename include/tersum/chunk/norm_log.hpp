// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A squared norm on the wire as a 16-bit logarithm, whose sum does not depend on the order of the reduction.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief The logarithm of a squared norm in [2^-64, 2^64), as fine as the sum of all ranks in 16 bits allows.
//!
//! A sum of logarithms orders chunks by the geometric mean of their norms. With n ranks a code lies in 0 .. F, where F =
//! (65535 / n - 1) / n. An octave then has F / 128 codes, for instance 32 with 4 ranks. A norm that is not finite has
//! the code n F + 1, so that every sum tells whether it holds one. Two codes share a uint32 element, which every
//! transport sums natively: 2 bytes per chunk.
struct norm_log {
  static constexpr int max_world =
    64;  //!< With so many ranks an octave has no more than an eighth of a code.
  std::uint16_t code;
  constexpr description describe() const { return {"norm_log"}; }
};

namespace detail {

//! F, the largest code of a finite norm: that of 2^64.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t norm_log_limit(int world) noexcept
{
  auto const n = static_cast<std::uint32_t>(world);
  return (65535u / n - 1u) / n;
}

//! @brief One rank's code. The bits of a float are its logarithm, within .086 of an octave, and ascend with it.
[[nodiscard]] TERSUM_INLINE constexpr norm_log to_norm_log(float square, int world) noexcept
{
  constexpr std::uint32_t lowest = (127u - 64u) << 23;
  std::uint32_t const limit      = norm_log_limit(world);
  std::uint32_t const bits       = float_bits(square);
  if (bits >= 0x7f800000u) {
    return {static_cast<std::uint16_t>(static_cast<std::uint32_t>(world) * limit + 1)};
  }
  std::uint32_t const above = bits < lowest ? 0u : minimum(bits - lowest, 1u << 30);
  return {static_cast<std::uint16_t>(static_cast<std::uint64_t>(above) * limit >> 30)};
}

//! Whether all norms whose codes are in a sum were finite.
[[nodiscard]] TERSUM_INLINE constexpr bool is_finite(norm_log sum, int world) noexcept
{
  return sum.code <= static_cast<std::uint32_t>(world) * norm_log_limit(world);
}

}  // namespace detail

//! How squared norms are summed on the wire.
template <class Scalar>
using norm_sum = std::conditional_t<
  std::is_same_v<Scalar, norm_log>,
  native_sum<std::uint32_t>,
  native_sum<std::conditional_t<std::is_same_v<Scalar, norm_log>, float, Scalar>>>;

}  // namespace tersum::inline v0
