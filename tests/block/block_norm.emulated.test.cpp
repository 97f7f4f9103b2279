// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Squared norms of chunks in registers, against the tree of the wire format written as loops, bit for bit.

#include "support/emulator.hpp"
#include "support/mismatches.hpp"

#include <tersum/block/block_load.hpp>
#include <tersum/block/block_norm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace tersum;
using emulator::host_context;
using tersum::tests::mismatches;

// 256 sums, or as many as a chunk has coordinates, then pairs of neighbours.
float reference(std::vector<float> const& gradient, std::size_t begin, std::size_t size)
{
  std::vector<float> sums(std::min<std::size_t>(size, 256), 0.0f);
  for (std::size_t i = 0; i < size; ++i) {
    float const value = begin + i < gradient.size() ? gradient[begin + i] : 0.0f;
    float& sum        = sums[i % 256];
    sum               = std::fma(value, value, sum);
  }
  for (std::size_t count = sums.size(); count > 1; count /= 2) {
    for (std::size_t i = 0; i < count / 2; ++i) { sums[i] = sums[2 * i] + sums[2 * i + 1]; }
  }
  return sums[0];
}

template <int Size>
void compare(mismatches& wrong, std::size_t coordinates, emulator::thread_order order)
{
  using chunk = block_chunk<Size>;
  std::mt19937 random{static_cast<unsigned>(coordinates)};
  std::vector<float> gradient(coordinates);
  for (float& x : gradient) {
    x =
      std::ldexp(static_cast<float>(random()) * 0x1p-31f - 1, static_cast<int>(random() % 40) - 20);
  }
  std::size_t const chunks = (coordinates + Size - 1) / Size;
  // One value of each thread: all of a chunk have the norm.
  std::vector<float> norms(chunk::blocks(coordinates) * chunk::block_threads, -1);
  emulator::launch({.blocks  = static_cast<std::uint32_t>(chunk::blocks(coordinates)),
                    .threads = chunk::block_threads},
                   order,
                   [&](host_context& ctx) {
                     chunk const mine = chunk::of(ctx, coordinates);
                     float v[32];
                     load_chunk(ctx, mine, gradient.data(), v);
                     norms[mine.chunk * chunk::threads + mine.thread] = block_norm(ctx, mine, v);
                   });
  for (std::size_t thread = 0; thread < norms.size(); ++thread) {
    std::size_t const at = thread / chunk::threads;
    wrong.expect(
      std::bit_cast<std::uint32_t>(norms[thread]),
      std::bit_cast<std::uint32_t>(at < chunks ? reference(gradient, at * Size, Size) : 0.0f),
      Size,
      coordinates,
      thread);
  }
}

}  // namespace

TEST_CASE(
  "[kernels] the norm of a chunk in registers is that of the wire format, in any order of threads")
{
  mismatches wrong;
  for (auto const order : {emulator::forward, emulator::shuffled(3)}) {
    for (std::size_t const coordinates : {1u, 127u, 128u, 129u, 1023u, 1024u, 1025u, 4099u}) {
      compare<128>(wrong, coordinates, order);
      compare<256>(wrong, coordinates, order);
      compare<512>(wrong, coordinates, order);
      compare<1024>(wrong, coordinates, order);
    }
  }
  CHECK(wrong.report() == "");
}
