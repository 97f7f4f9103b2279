// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! No codes at all: the coordinates travel as floating point.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief Converts each coordinate to `T`. Round to nearest even.
//!
//! Under `in_wire` the transport sums the elements natively: all of them, which is what users have today, or the chunks that a
//! chunker chooses, such as those of TopKC. The sum is divided by the number of ranks after the exchange, so
//! the sum itself must fit `T`. Above 65504 a half overflows, which the flag of values that are not finite reports. With
//! feedback no sum overflows: a rank among n sends about +-65504 / n at most, and keeps the rest.
//!
//! Under `shard`, `publish`, `gather` and `two_shot` elements are decoded before they are added, in float. Of 16-bit elements each chunk
//! has a scale, the power of two that brings its largest magnitude to 2^14 or above, below 2^15: halves neither overflow, nor lose bits of
//! values above 2^-28 of the largest one. Floats travel as they are. Under all forms the rotator is `no_rotation`.
template <gradient_element T>
struct cast {
  using element             = T;
  using quantizer_type      = cast;
  static constexpr int bits = 8 * static_cast<int>(sizeof(T));  //!< On the wire.
  constexpr description describe() const { return {"cast", T{}}; }
};

}  // namespace tersum::inline v0
