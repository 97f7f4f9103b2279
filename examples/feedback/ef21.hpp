// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! EF21 (Richtárik et al., 2021): ranks send codes of what their gradient differs from what they have sent so far.
//! c = C(g - h), h = h + c on each rank; all ranks add the mean of c to their estimate of the mean gradient.

#pragma once

#include <tersum/tersum.hpp>

#include <cstddef>
#include <span>

struct ef21_feedback {
  static constexpr bool enabled = true;
  constexpr tersum::description describe() const { return {"ef21_feedback"}; }

  template <class Arithmetic>
  TERSUM_HOST_DEVICE float before(Arithmetic const&, float gradient, float sent_so_far) const
  {
    return Arithmetic::subtract(gradient, sent_so_far);
  }
  template <class Arithmetic>
  TERSUM_HOST_DEVICE float after(Arithmetic const&, float value, float lost, float sent) const
  {
    return Arithmetic::add(sent, Arithmetic::subtract(value, lost));
  }
};
using ef21_codec = tersum::codec<tersum::fixed_chunks<256>,
                                 tersum::partial_hadamard<256>,
                                 tersum::scaled_codes<tersum::lloyd_max<1>>,
                                 tersum::gather,
                                 ef21_feedback>;

//! @param gradient  The rank's own; then what the mean of the ranks' estimates has changed by.
//! @param estimate  Of the mean gradient, zeros at first, equal on all ranks.
template <class Reduce>
[[nodiscard]] tersum::status ef21_step(tersum::plan<ef21_codec> const& plan,
                                       std::span<float> gradient,
                                       std::span<float> estimate,
                                       std::span<std::byte> state,
                                       std::span<std::byte> workspace,
                                       Reduce const& reduce)
{
  auto const s = all_reduce_mean(tersum::cpu_executor{}, plan, gradient, state, workspace, reduce);
  for (std::size_t i = 0; s.ok() && i < gradient.size(); ++i) { estimate[i] += gradient[i]; }
  return s;
}
