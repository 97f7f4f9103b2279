// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Squared norms of chunks in registers, against the tree of the wire format written as loops, bit for bit.

#include "support/emulator.hpp"
#include "support/mismatches.hpp"

#include <tersum/block/block_norm.hpp>
#include <tersum/block/block_values.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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

template <int Size, bool Striped = false>
void compare(mismatches& wrong, std::size_t coordinates, emulator::thread_order order)
{
  using chunk = block_chunk<Size>;
  using norm  = block_norm<Size, Striped>;
  std::mt19937 random{static_cast<unsigned>(coordinates)};
  std::vector<float> gradient(coordinates);
  for (float& x : gradient) {
    x =
      std::ldexp(static_cast<float>(random()) * 0x1p-31f - 1, static_cast<int>(random() % 40) - 20);
  }
  // One value of each thread: all of a chunk have the norms.
  std::size_t const blocks = chunk::blocks(coordinates);
  std::vector<float> squares(blocks * chunk::block_threads, -1), largest = squares;
  emulator::launch({.blocks       = static_cast<std::uint32_t>(blocks),
                    .threads      = chunk::block_threads,
                    .shared_bytes = norm::storage_floats * sizeof(float)},
                   order,
                   [&](host_context& ctx) {
                     chunk const mine       = chunk::of(ctx, coordinates);
                     auto* const storage    = static_cast<float*>(ctx.shared());
                     std::size_t const here = mine.chunk * chunk::threads + mine.thread;
                     float v[32];
                     block_values<Size, Striped>::load(ctx, mine, gradient.data(), v);
                     largest[here] = norm::largest(ctx, mine, storage, v);
                     squares[here] = norm::squared(ctx, mine, storage, v);
                   });
  for (std::size_t thread = 0; thread < squares.size(); ++thread) {
    std::size_t const at = thread / chunk::threads * Size;
    float most           = 0;
    for (std::size_t i = at; i < std::min(at + Size, coordinates); ++i) {
      most = std::max(most, std::abs(gradient[i]));
    }
    wrong.expect(squares[thread], reference(gradient, at, Size), Size, coordinates, thread);
    wrong.expect(largest[thread], most, Size, coordinates, thread);
  }
  if constexpr (!Striped) { compare<Size, true>(wrong, coordinates, order); }
}

}  // namespace

TEST_CASE(
  "[kernels] the norms of a chunk in registers are those of the wire format, in any order of threads")
{
  mismatches wrong;
  for (auto const order : {emulator::forward, emulator::shuffled(3)}) {
    for (std::size_t const coordinates : {1u, 127u, 128u, 129u, 1023u, 1024u, 1025u, 4099u}) {
      compare<32>(wrong, coordinates, order);
      compare<64>(wrong, coordinates, order);
      compare<128>(wrong, coordinates, order);
      compare<256>(wrong, coordinates, order);
      compare<512>(wrong, coordinates, order);
      compare<1024>(wrong, coordinates, order);
      compare<2048>(wrong, coordinates, order);
    }
    compare<4096>(wrong, 4097, order);
    compare<8192>(wrong, 8200, order);
    compare<32768>(wrong, 32767, order);
  }
  CHECK(wrong.report() == "");
}
