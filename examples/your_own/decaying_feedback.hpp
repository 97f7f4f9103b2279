// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback: what was lost is added to later gradients, but less and less of it, so that old gradients are forgotten.

#pragma once

#include <tersum/tersum.hpp>

struct decaying_feedback {
  static constexpr bool enabled = true;
  constexpr tersum::description describe() const { return {"decaying_feedback", decay}; }

  float decay = 0.9f;

  template <class Arithmetic>
  TERSUM_HOST_DEVICE float before(Arithmetic const&, float gradient, float kept) const
  {
    return Arithmetic::fma(decay, kept, gradient);
  }
  template <class Arithmetic>
  TERSUM_HOST_DEVICE float after(Arithmetic const&, float, float lost, float) const
  {
    return lost;
  }
};
static_assert(tersum::feedback<decaying_feedback>);
