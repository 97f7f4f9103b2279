// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! No codes at all: the coordinates travel as floating point.

#pragma once

#include <tersum/concepts.hpp>

namespace tersum::inline v0 {

//! @brief Converts each coordinate to `T`, which the transport sums natively. Round to nearest even.
//!
//! The sum is divided by the number of ranks after the exchange, so the sum itself must fit `T`. Above 65504 a half
//! overflows, which the flag of values that are not finite reports. With feedback a rank sends +-65504 at most, and keeps the
//! rest.
template <gradient_element T>
struct cast {
  using element = T;
};

}  // namespace tersum::inline v0
