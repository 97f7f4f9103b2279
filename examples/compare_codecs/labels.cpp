// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What labels.hpp declares.

#include "labels.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

namespace compare_codecs {

namespace {

double overlap(box const& a, box const& b)
{
  auto const width  = std::min(a.right, b.right) - std::max(a.left, b.left);
  auto const height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  return std::max(width, 0.0) * std::max(height, 0.0);
}

double area_outside(box const& a, box const& area)
{
  return (a.right - a.left) * (a.bottom - a.top) - overlap(a, area);
}

// The label `shift` pixels below its dot; farther to the side as well when a line leads to it.
label_place make_place(dot_label const& dot, double shift, bool on_right)
{
  bool const leader = shift != 0;
  auto const gap    = leader ? 18.0 : dot_radius + 3;
  auto const left   = on_right ? dot.x + gap : dot.x - gap - dot.width;
  auto const middle = dot.y + shift;
  return {.text     = {.left   = left,
                       .top    = middle - label_height / 2,
                       .right  = left + dot.width,
                       .bottom = middle + label_height / 2},
          .on_right = on_right,
          .leader   = leader};
}

}  // namespace

std::vector<label_place> place_labels(std::vector<dot_label> const& dots, box const& area)
{
  std::vector<box> taken;
  for (auto const& dot : dots) {
    taken.push_back(
      {dot.x - dot_radius, dot.y - dot_radius, dot.x + dot_radius, dot.y + dot_radius});
  }
  std::vector<std::size_t> order(dots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&dots](std::size_t a, std::size_t b) {
    return dots[a].y < dots[b].y;
  });

  std::vector<label_place> places(dots.size());
  for (auto const i : order) {
    auto least = std::numeric_limits<double>::infinity();
    // 0, +1, -1, +2, -2, ... half lines away, at most twelve lines
    for (int k = 0; k <= 48 && least > 0; ++k) {
      auto const shift = (k % 2 == 1 ? 1 : -1) * ((k + 1) / 2) * label_height / 2;
      for (bool const on_right : {true, false}) {
        auto const place = make_place(dots[i], shift, on_right);
        auto cost        = area_outside(place.text, area);
        for (auto const& other : taken) { cost += overlap(place.text, other); }
        if (cost < least) {
          least     = cost;
          places[i] = place;
        }
      }
    }
    taken.push_back(places[i].text);
  }
  return places;
}

}  // namespace compare_codecs
