// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A metric: coordinates count in units of the largest mean that they had lately, as under the optimizer Adamax.

#pragma once

#include <tersum/tersum.hpp>

struct largest_mean {
  static constexpr bool scaled = true;
  constexpr tersum::description describe() const { return {"largest_mean", decay}; }

  float decay = 0.99f;

  template <class Arithmetic>
  TERSUM_HOST_DEVICE float least(Arithmetic const&, float largest) const
  {
    return Arithmetic::multiply(0.01f, largest);
  }
  template <class Arithmetic>
  TERSUM_HOST_DEVICE float update(Arithmetic const&, float value, float scale, float) const
  {
    float const size = value < 0 ? -value : value;  // in units of the scale
    return Arithmetic::multiply(scale, size > decay ? size : decay);
  }
};
static_assert(tersum::metric<largest_mean>);
