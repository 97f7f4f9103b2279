// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Errors count in the gradient's own units.

#pragma once

#include <tersum/concepts.hpp>

namespace tersum::inline v0 {

//! @brief No metric: an error counts alike wherever it is. Costs nothing.
struct plain_metric {
  static constexpr bool scaled = false;
  constexpr description describe() const { return {"plain_metric"}; }
};

static_assert(metric<plain_metric>, "tersum: must model tersum::metric");

}  // namespace tersum::inline v0
