// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a state keeps of a metric, and what kernels are given of it.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/detail/sections.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! Without scales nothing is kept.
template <class Metric>
struct kept_scales {
  static constexpr float const* scales = nullptr;

  static constexpr kept_scales of(section_list& state, std::uint64_t) noexcept
  {
    state.keep<float>("scales", 0);
    return {};
  }
};

//! A scale for each coordinate.
template <class Metric>
requires(Metric::scaled) struct kept_scales<Metric> {
  using scale = typename scale_of<Metric>::type;

  scale* scales;  // plan.coordinates() values

  static constexpr kept_scales of(section_list& state, std::uint64_t coordinates) noexcept
  {
    return {state.keep<scale>("scales", round_up(coordinates, 16 / sizeof(scale)))};
  }
};

}  // namespace tersum::inline v0::detail
