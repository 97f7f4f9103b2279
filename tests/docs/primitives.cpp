// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/primitives.md, which runs in its order, on one rank: what comes out is checked.

#include "docs/page.hpp"

#include <tersum/tersum.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace tersum;
using pages::check;
using pages::error_of;
using pages::waves;

namespace {

// code 3

void choose(cpu_executor const& exec, std::vector<float> const& gradient)
{
  // code 1

  check(s.ok(), "chunks are chosen");
  std::size_t chosen = 0;
  for (std::uint32_t const place : places) { chosen += chunk_place::of(place).level == 1 ? 1 : 0; }
  check(chosen == 100, "a hundred chunks are chosen");
  check(first.level <= 1, "a chunk has one level");
}

void exchange(cpu_executor const& exec, std::vector<float>& gradient)
{
  std::vector<float> const before = gradient;
  std::uint64_t const seed = 1, step = 0;
  std::uint32_t const rank = 0;
  int const world          = 1;
  status s;
  // code 2

  // code 4

  // code 5

  check(s.ok(), "codes of chunks");
  check(error_of(gradient, before) < .05,
        "the mean of one rank is its gradient, up to the error of 4 bits");
}

void others(cpu_executor const& exec, std::vector<float>& gradient)
{
  status s;
  {
    std::vector<std::uint32_t> sum(4), mine(4, 0x11u), theirs(4, 0x7eu), gathered(8 * 4, 0x1u);
    std::vector<std::uint32_t const*> const payloads{mine.data(), theirs.data()};
    // code 6

    check(s.ok() && sum[3] == 0x7u, "lanes of 4 bits saturate at 7");
  }
  {
    std::uint64_t const rows = 30, columns = 40, seed = 1;
    std::vector<float> start = waves(columns * 4, .7f);
    // code 7

    // sin(a + b) of rank 2 is the product of its factors.
    double off = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        double made = 0;
        for (std::size_t k = 0; k < 4; ++k) {
          made += static_cast<double>(p[k * rows + i]) * static_cast<double>(q[k * columns + j]);
        }
        off += std::fabs(made - static_cast<double>(gradient[i * columns + j]));
      }
    }
    check(s.ok() && off < 1e-2, "a matrix of rank 2 is the product of its factors");
  }
}

}  // namespace

int main()
{
  cpu_executor const exec{.threads = 2};
  std::vector<float> gradient = waves(64 * 1024, .37f);
  choose(exec, gradient);
  exchange(exec, gradient);
  std::vector<float> matrix = waves(30 * 40, .37f);
  others(exec, matrix);
  return pages::faults;
}
