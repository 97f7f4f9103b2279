// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Groups of every size, on a host thread and in a block, compute the same bits.

#include "support/emulator.hpp"

#include <tersum/block/block_group.hpp>
#include <tersum/block/group.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

using namespace tersum;

namespace {

std::vector<float> numbers(int count, unsigned seed)
{
  std::mt19937 random{seed};
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& v : out) {
    v = std::ldexp(static_cast<float>(random()) * 0x1p-31f - 1, static_cast<int>(random() % 30));
  }
  return out;
}

// What a group makes of an array: a sum, a maximum, a count, and a value that passes between threads.
struct results {
  float sum = 0, maximum = 0, mixed = 0;
  std::uint32_t negative                                 = 0;
  friend bool operator==(results const&, results const&) = default;
};

template <group Group>
results work(Group const& g, std::span<float const> values, float* memory)
{
  int const count = static_cast<int>(values.size());
  auto const at   = [&](int i) { return values[static_cast<std::size_t>(i)]; };
  // A product that is contracted into the sum after it would have other bits.
  g.each(count, [&](int i) { memory[i] = g.add(g.multiply(at(i), 1.1f), 0.3f); });
  g.sync();
  results out;
  out.sum      = g.sum(count, at);
  out.maximum  = g.maximum(count, at);
  out.negative = g.sum(count, [&](int i) { return at(i) < 0 ? 1u : 0u; });
  out.mixed    = g.sum(count, [&](int i) {
    float const other = memory[(i + 77) % count];
    return g.divide(g.square_root(g.fma(other, other, 1.0f)), g.subtract(at(i), 0.7f));
  });
  return out;
}

// Every thread of every group in a block must have the same results.
template <int Threads>
void check_size(std::vector<float> const& values, results const& expected)
{
  CAPTURE(Threads);
  constexpr unsigned threads = Threads < 128 ? 128 : Threads;
  constexpr unsigned groups  = Threads <= 32 ? threads / Threads : 1;
  constexpr unsigned block   = Threads <= 32 ? threads : Threads;
  std::size_t const words    = values.size() + 128;
  for (emulator::thread_order const order : emulator::thread_orders) {
    CAPTURE(order);
    std::vector<results> out(block);
    emulator::launch({.threads = block, .shared_bytes = groups * words * sizeof(float)},
                     order,
                     [&](emulator::host_context& ctx) {
                       float* const own =
                         static_cast<float*>(ctx.shared()) + ctx.thread_rank() / Threads * words;
                       block_group<emulator::host_context, Threads> const g{ctx, own};
                       out[ctx.thread_rank()] = work(g, values, own + 128);
                     });
    for (results const& each : out) { REQUIRE(each == expected); }
  }
}

TEST_CASE("[block] groups of all sizes make the same sums as a host thread")
{
  for (int const count : {1, 100, 128, 1000}) {
    CAPTURE(count);
    auto const values = numbers(count, 3);
    std::vector<float> memory(values.size());
    results const expected = work(host_group{}, values, memory.data());
    check_size<4>(values, expected);
    check_size<32>(values, expected);
    check_size<64>(values, expected);
    check_size<128>(values, expected);
    check_size<512>(values, expected);
  }
}

TEST_CASE("[block] a group's sum has the order that its comment says")
{
  auto const values = numbers(1000, 5);
  float lanes[128]  = {};
  for (std::size_t i = 0; i < values.size(); ++i) { lanes[i % 128] += values[i]; }
  for (int width = 64; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) { lanes[i] += lanes[i + width]; }
  }
  float const sum =
    host_group::sum(1000, [&](int i) { return values[static_cast<std::size_t>(i)]; });
  CHECK(std::bit_cast<std::uint32_t>(sum) == std::bit_cast<std::uint32_t>(lanes[0]));
}

TEST_CASE("[block] a group's maximum puts NaN above infinity")
{
  float const infinity = std::numeric_limits<float>::infinity();
  float const some[]{1, -infinity, 3};
  CHECK(host_group::maximum(3, [&](int i) { return some[i]; }) == infinity);
  float const with_nan[]{infinity, -std::numeric_limits<float>::quiet_NaN(), 3};
  CHECK(std::isnan(host_group::maximum(3, [&](int i) { return with_nan[i]; })));
}

}  // namespace
