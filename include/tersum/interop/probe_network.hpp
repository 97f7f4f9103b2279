// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Latency and bandwidth of a transport, measured on it.

#pragma once

#include <tersum/exchange/rank_blocks.hpp>
#include <tersum/interop/transport.hpp>
#include <tersum/model/network.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>

namespace tersum::inline v0 {

namespace detail {

//! @brief The largest number of any rank, on every rank; also a barrier.
template <transport Transport>
[[nodiscard]] status largest_of_ranks(Transport const& over, double& number)
{
  return pass_round(over, std::bit_cast<std::uint64_t>(number), [&](std::uint64_t received) {
    number = std::max(number, std::bit_cast<double>(received));
  });
}

//! @brief Calls a collective with more and more bytes, up to what takes about a fifth of a second, and fits a network to the
//! medians of five to 31 calls, as many as last a twentieth of a second. Before each the ranks rest for two milliseconds and write
//! other memory, so that token buckets are as full and caches as cold as they are when ranks have computed.
//! @param most      The most bytes to give to it.
//! @param traffic   Bytes that a rank sends for each that it gives.
//! @param messages  In a row.
//! @param other     Memory that is written between calls.
//! @param move      status(std::size_t bytes).
template <transport Transport, class Move>
[[nodiscard]] status probe_collective(Transport const& over,
                                      std::size_t most,
                                      double traffic,
                                      int messages,
                                      std::span<std::byte> other,
                                      Move const& move,
                                      model::network& found)
{
  constexpr double longest = .2;
  constexpr double enough  = .05;
  std::array<model::timing, 12> timings{};
  std::size_t count    = 0;
  std::size_t bytes    = 512;
  double of_one_before = 0;
  while (count < timings.size() && (count == 0 || bytes <= most)) {
    std::array<double, 31> times{};
    std::size_t turns = 0;
    double spent      = 0;
    bool first        = count == 0;  // which connects
    // All ranks have the same times, and so make as many turns.
    while (turns < 5 || (turns < times.size() && spent < enough)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::fill(other.begin(), other.end(), static_cast<std::byte>(turns));
      double barrier = 0;
      if (status const s = largest_of_ranks(over, barrier); !s.ok()) { return s; }
      auto const begin = std::chrono::steady_clock::now();
      if (status const s = move(std::min(bytes, most)); !s.ok()) { return s; }
      double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (status const s = largest_of_ranks(over, took); !s.ok()) { return s; }
      if (!std::exchange(first, false)) {
        times[turns++] = took;
        spent += took;
      }
    }
    double* const middle = times.data() + turns / 2;
    std::nth_element(times.data(), middle, times.data() + turns);
    timings[count++] = {traffic * static_cast<double>(std::min(bytes, most)), *middle};
    of_one_before    = *middle;
    bytes            = count == 1 ? std::size_t{1} << 13 : bytes * (bytes < 1 << 17 ? 2 : 3);
    // At least two beside the smallest, which gives the latency.
    if (count > 2 && 3 * of_one_before > longest) { break; }
  }
  found = model::fit_network(std::span{timings}.first(count), messages);
  return {};
}

}  // namespace detail

//! @brief Measures a transport as direct exchanges use it: all-to-all and all-gather of bytes, all ranks at once.
//!
//! All ranks call it at once, with scratch of one size; it takes two to three seconds. Every rank finds the slowest's numbers.
//! @param over     Moves host memory.
//! @param scratch  Memory that the transport may send from and write to: 512 KiB at least, 64 MiB for fast networks.
//! @param found    Latency of a message, bandwidth, and burst; unchanged after an error.
template <transport Transport>
[[nodiscard]] status probe_network(Transport const& over,
                                   std::span<std::byte> scratch,
                                   model::network& found)
{
  if (status const s = over.check(); !s.ok()) { return s; }
  constexpr std::size_t least = 1 << 19;
  if (scratch.size() < least) {
    return {error_code::invalid_argument, "probe_network: scratch must have 512 KiB at least"};
  }
  if (over.size() < 2) {
    found = {};
    return {};
  }
  // What is received may be an element a rank longer than what is sent.
  std::size_t const half    = scratch.size() / 2 - static_cast<std::size_t>(over.size());
  std::byte* const received = scratch.data() + half;
  return detail::probe_collective(
    over,
    half,
    model::all_reduce_traffic(model::route::direct, 1, over.size()),
    model::all_reduce_messages(model::route::direct, over.size()),
    scratch.last(std::min<std::size_t>(scratch.size() / 4, 1 << 24)),
    [&](std::size_t bytes) -> status {
      rank_blocks const blocks{bytes, 1, over.size()};
      if (status const s = over.all_to_all(scratch.data(), blocks, received); !s.ok()) { return s; }
      return over.all_gather(scratch.data(), blocks);
    },
    found);
}

}  // namespace tersum::inline v0
