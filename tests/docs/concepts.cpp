// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/concepts.md, whose codec exchanges a gradient.

#include "../examples/your_own/sign_quantizer.hpp"
#include "docs/page.hpp"

#include <tersum/tersum.hpp>

#include <cstddef>
#include <vector>

// code 1

static_assert(codec.coder.range.clip == .8f);
static_assert(codec.plan({.coordinates = 1}, {.size = 127, .rank = 0}).check().ok());
static_assert(!codec.plan({.coordinates = 1}, {.size = 128, .rank = 0}).check().ok());

int main()
{
  // A step of .8 root mean squares loses 1 - 2/pi of normal values; feedback sends that later.
  pages::one_rank mine{codec.plan({.coordinates = 4096}, {})};
  std::vector<float> const gradient = pages::waves(4096, .37f);
  std::vector<float> average(gradient.size());
  for (int step = 0; step < 32; ++step) {
    std::vector<float> const mean = mine.mean_of(gradient);
    if (step == 0) {
      double const lost = pages::error_of(mean, gradient);
      pages::check(lost > .3 && lost < .45, "signs lose a third");
    }
    for (std::size_t i = 0; i < mean.size(); ++i) { average[i] += mean[i] / 32; }
  }
  pages::check(pages::error_of(average, gradient) < .02,
               "means with feedback average to the gradient");
  return pages::faults;
}
