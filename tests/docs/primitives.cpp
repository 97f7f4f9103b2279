// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/primitives.md.

#include <tersum/tersum.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace tersum;

std::span<std::byte> aligned(std::vector<std::byte>& memory);

// code 4

void call(cpu_executor const& exec,
          std::vector<float>& gradient,
          std::vector<float>& scales,
          std::vector<float>& steps,
          std::vector<float> const& start,
          std::vector<float>& momenta,
          std::vector<float> const& residual,
          std::vector<std::uint32_t>& sum,
          std::vector<std::uint32_t> const& mine,
          std::vector<std::uint32_t> const& theirs,
          std::vector<std::uint32_t> const& gathered,
          std::vector<std::uint32_t const*> const& payloads,
          std::uint64_t rows,
          std::uint64_t columns,
          std::uint64_t step,
          std::uint64_t seed,
          std::uint32_t rank)
{
  // code 1

  static_cast<void>(first);
  // code 2

  // code 3

  // code 5

  // code 6

  // code 7

  matrix_view<float> const other{gradient.data(), columns, rows};
  std::vector<float> other_p(columns * 2), other_q(rows * 2);
  // code 8

  static_cast<void>(s);
}
