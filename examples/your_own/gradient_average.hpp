// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A momentum of one's own: a moving average of gradients, as Adam's first moment is before it is corrected.

#pragma once

#include <tersum/config.hpp>
#include <tersum/feedback/momentum.hpp>

struct gradient_average {
  float share = 0.25f;  //!< Of the new gradient.

  template <class Arithmetic>
  TERSUM_HOST_DEVICE float next(Arithmetic const&, float gradient, float kept) const
  {
    return Arithmetic::fma(Arithmetic::subtract(gradient, kept), share, kept);
  }
  template <class Arithmetic>
  TERSUM_HOST_DEVICE float value(Arithmetic const&, float, float next) const
  {
    return next;
  }
};
static_assert(tersum::momentum<gradient_average>);
