// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The reductions that every transport has built in.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief Element-wise sum. Sixteen-bit floating point is added in float and rounded to nearest even at each sum.
//! Integers wrap around; plans of codecs that use them refuse numbers of ranks with which that could happen.
template <class T>
struct native_sum {
  using element                     = T;
  static constexpr bool native      = true;
  static constexpr bool maximum     = false;
  static constexpr bool associative = std::is_integral_v<T>;  //!< Any order gives the same bits.
  static constexpr bool exact       = std::is_integral_v<T>;

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr T operator()(T a, T b) const noexcept
  {
    if constexpr (std::is_integral_v<T>) {
      using word = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<word>(static_cast<word>(a) + static_cast<word>(b)));
    } else {
      return from_float<T>(to_float(a) + to_float(b));
    }
  }
};

//! @brief Element-wise maximum of numbers that are not NaN.
template <class T>
struct native_max {
  using element                     = T;
  static constexpr bool native      = true;
  static constexpr bool maximum     = true;  //!< Transports take the largest, not the sum.
  static constexpr bool associative = true;
  static constexpr bool exact       = true;

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr T operator()(T a, T b) const noexcept
  {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? b : a;
    } else {
      return to_float(a) < to_float(b) ? b : a;
    }
  }
};

static_assert(reduce_op<native_sum<float>>, "tersum: must model tersum::reduce_op");
static_assert(reduce_op<native_max<bfloat16>>, "tersum: must model tersum::reduce_op");

}  // namespace tersum::inline v0
