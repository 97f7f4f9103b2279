// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/low_rank.md: its plan has the sizes of the factors, and its codec exchanges a matrix.

#include "docs/page.hpp"

#include <tersum/presets.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

void plan_it()
{
  constexpr std::uint64_t coordinates = 4096 * 1024;
  // code 1

  pages::check(plan.check().ok(), "the plan");
  pages::check(plan.wire_bytes() == 4 * (4096 + 1024) * sizeof(float),
               "four columns of P and of Q");
}

int main()
{
  plan_it();

  // sin(a + b) is the sum of two products.
  std::vector<tersum::tensor> const tensors{
    {.name = "weight", .rows = 48, .columns = 64, .offset = 0}};
  pages::one_rank mine{tersum::presets::powersgd_r4.plan(tersum::layout{48 * 64, tensors}, {})};
  std::vector<float> const gradient = pages::waves(48 * 64, .37f);
  pages::check(pages::error_of(mine.mean_of(gradient), gradient) < 1e-8, "a matrix of rank 2");
  return pages::faults;
}
