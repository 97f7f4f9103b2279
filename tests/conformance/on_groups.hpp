// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The plain form of a policy on a host thread and on blocks of several sizes.

#pragma once

#include "support/emulator.hpp"

#include <tersum/block/block_group.hpp>
#include <tersum/block/group.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace tersum::tests {

//! A chunk, and what a policy says of it.
struct chunk_result {
  std::vector<float> values;
  float said = 0;
};

//! The bits of all numbers, to compare.
[[nodiscard]] inline std::vector<std::uint32_t> bits_of(chunk_result const& result)
{
  std::vector<std::uint32_t> out;
  for (float const v : result.values) { out.push_back(std::bit_cast<std::uint32_t>(v)); }
  out.push_back(std::bit_cast<std::uint32_t>(result.said));
  return out;
}

//! A chunk of values of several sizes, some of them large.
[[nodiscard]] inline std::vector<float> make_chunk(int size, unsigned seed)
{
  std::mt19937 random{seed};
  std::vector<float> out(static_cast<std::size_t>(size));
  for (float& v : out) {
    v = (static_cast<float>(random()) * 0x1p-31f - 1) * (random() % 64 == 0 ? 50.0f : 1.0f);
  }
  return out;
}

//! @brief Calls work(group, chunk, scratch) on a host thread, with NaNs as scratch.
template <int Size, class Work>
[[nodiscard]] chunk_result on_host(std::vector<float> const& in, Work const& work)
{
  std::vector<float> memory(2 * Size, std::numeric_limits<float>::quiet_NaN());
  std::copy(in.begin(), in.end(), memory.begin());
  auto& x          = *reinterpret_cast<float(*)[Size]>(memory.data());
  auto& scratch    = *reinterpret_cast<float(*)[Size]>(memory.data() + Size);
  float const said = work(host_group{}, x, scratch);
  return {{x, x + Size}, said};
}

//! @brief The same on a block of `Threads`, in which every thread must get the same answer.
template <int Size, int Threads, class Work>
[[nodiscard]] chunk_result on_block(std::vector<float> const& in,
                                    Work const& work,
                                    emulator::thread_order order)
{
  constexpr unsigned threads = std::max(Threads, 32);
  constexpr unsigned groups  = threads / Threads;
  constexpr std::size_t own  = 2 * Size + 128;
  chunk_result out{std::vector<float>(Size)};
  std::vector<float> said(threads);
  emulator::launch({.threads = threads, .shared_bytes = groups * own * sizeof(float)},
                   order,
                   [&](emulator::host_context& ctx) {
                     unsigned const number = ctx.thread_rank() / Threads;
                     float* const memory   = static_cast<float*>(ctx.shared()) + number * own;
                     auto& x               = *reinterpret_cast<float(*)[Size]>(memory);
                     auto& scratch         = *reinterpret_cast<float(*)[Size]>(memory + Size);
                     block_group<emulator::host_context, Threads> const g{ctx, memory + 2 * Size};
                     g.each(Size, [&](int i) { x[i] = in[static_cast<std::size_t>(i)]; });
                     g.sync();
                     said[ctx.thread_rank()] = work(g, x, scratch);
                     g.sync();
                     if (number == 0) {
                       g.each(Size, [&](int i) { out.values[static_cast<std::size_t>(i)] = x[i]; });
                     }
                   });
  out.said = said[0];
  for (float const each : said) {
    REQUIRE(std::bit_cast<std::uint32_t>(each) == std::bit_cast<std::uint32_t>(out.said));
  }
  return out;
}

//! @brief Checks that groups of all sizes, in all orders of threads, do what a host thread does.
template <int Size, class Work>
void check_groups(std::vector<float> const& in, Work const& work)
{
  auto const expected = bits_of(on_host<Size>(in, work));
  for (emulator::thread_order const order : emulator::thread_orders) {
    CAPTURE(order);
    CHECK(bits_of(on_block<Size, 4>(in, work, order)) == expected);
    CHECK(bits_of(on_block<Size, 32>(in, work, order)) == expected);
    CHECK(bits_of(on_block<Size, 128>(in, work, order)) == expected);
  }
}

}  // namespace tersum::tests
