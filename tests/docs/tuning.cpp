// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/tuning.md, which runs: residuals go along, and codecs with other numbers have their sizes.

#include "docs/page.hpp"

#include <tersum/tersum.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

using codec = std::remove_const_t<decltype(tersum::presets::rotated_sat4_ef)>;

void go_on(tersum::plan<codec> const& plan,
           std::span<std::byte> state,
           tersum::plan<codec> const& old_plan,
           std::span<std::byte> old_state,
           float new_scale,
           float old_scale)
{
  // code 1
}

// code 2

// Two shots of five bits lose less than those of four, and all plans have the bits that their names say.
void exchange_more(std::vector<float> const& gradient)
{
  tersum::world const four{.size = 4, .rank = 1};
  auto const bits_of = [&](auto const& chosen) {
    auto const plan = chosen.plan({.coordinates = 1 << 20}, four);
    pages::check(plan.check().ok(), "a plan");
    return plan.bits_per_coordinate();
  };
  using namespace my_presets;
  pages::check(std::fabs(bits_of(two_shot_5) - 5) < .1, "5 bits");
  pages::check(std::fabs(bits_of(two_shot_2_ef) - 2) < .1, "2 bits");
  pages::check(std::fabs(bits_of(metric_4) - 4) < .1, "4 bits in a metric");
  pages::check(bits_of(topkc_b8_ef) <= 8 && bits_of(allocated_3_ef) <= 3, "budgets");

  pages::one_rank four_bits{tersum::presets::two_shot_4.plan({.coordinates = gradient.size()}, {})};
  pages::one_rank five_bits{two_shot_5.plan({.coordinates = gradient.size()}, {})};
  double const more = pages::error_of(four_bits.mean_of(gradient), gradient);
  double const less = pages::error_of(five_bits.mean_of(gradient), gradient);
  pages::check(less < more / 2 && more < .03, "5 bits lose less than 4");
}

int main()
{
  std::vector<float> const gradient = pages::waves(5000, .37f);
  codec const one                   = tersum::presets::rotated_sat4_ef;
  pages::one_rank before{one.plan({.coordinates = gradient.size()}, {})};
  pages::one_rank after{one.plan({.coordinates = gradient.size()}, {.size = 3, .rank = 2})};
  before.mean_of(gradient);
  auto const left = residuals_of(before.plan, before.state);
  auto const kept = residuals_of(after.plan, after.state);
  pages::check(std::ranges::any_of(left, [](float x) { return x != 0; }),
               "codes of 4 bits lose something");
  std::ranges::fill(kept, 2.0f);
  go_on(after.plan, after.state, before.plan, before.state, 4, 2);
  pages::check(std::ranges::equal(left, kept), "the residual goes along");

  // The first line alone: in the plan that goes on, the residual gets the unit of the new scale.
  std::vector<float> const start{left.begin(), left.end()};
  go_on(before.plan, before.state, before.plan, before.state, 4, 2);
  bool doubled = true;
  for (std::size_t i = 0; i < start.size(); ++i) { doubled = doubled && left[i] == 2 * start[i]; }
  pages::check(doubled, "the residual follows the scale");

  exchange_more(gradient);
  return pages::faults;
}
