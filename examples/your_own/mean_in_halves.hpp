// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A form: two shots whose owners send the mean of a part in halves, whatever the ranks have sent.

#pragma once

#include <tersum/tersum.hpp>

#include <string_view>

struct mean_in_halves : tersum::two_shot {
  template <class Coder>
  using mean_coder = tersum::cast<tersum::half>;
  constexpr tersum::description describe() const { return {"mean_in_halves"}; }

  // Halves are in the order of the gradient, which a rotation leaves.
  template <bool Ask, class Chunker, class Rotator, class Coder, class Feedback, class Metric>
  static constexpr std::string_view suits()
  {
    if (Rotator::rotation_size != 1) { return "mean_in_halves takes no_rotation"; }
    if (tersum::selecting_chunker<Chunker>) { return "mean_in_halves takes fixed_chunks"; }
    return tersum::two_shot::suits<Ask, Chunker, Rotator, Coder, Feedback, Metric>();
  }
};
static_assert(tersum::form<mean_in_halves>);
