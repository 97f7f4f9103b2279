// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A network: seconds that collectives take on it, which are latency of the messages in a row and bytes over bandwidth, and the fit
//! of both to what was measured.
//!
//! There are p ranks, each of which gives n bytes to the collective. The forms are those of Thakur, Rabenseifner and Gropp (Optimization of collective
//! communication operations in MPICH, 2005), the tree is that of Sanders, Speck and Traeff (Two-tree algorithms for full
//! bandwidth broadcast, reduction and scan, 2009). One rank takes no time.

#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace tersum::inline v0 {

//! The performance model: plain functions of numbers that a plan gives or a user measures. Times are seconds, sizes bytes.
namespace model {

//! What takes no time: as a bandwidth or as a rate.
inline constexpr double unlimited = std::numeric_limits<double>::infinity();

//! @brief What connects the ranks, as one of them sees it while all of them send.
struct network {
  double latency    = 0;          //!< Seconds of one message, whatever its size.
  double bandwidth  = unlimited;  //!< Bytes per second that a rank sends.
  double burst      = 0;          //!< Bytes that pass before the limit of a token bucket is felt.
  double burst_rate = unlimited;  //!< Bytes per second at which they pass.
};

//! @brief Seconds until bytes have left a rank in some messages, one after the other.
[[nodiscard]] constexpr double send_seconds(network const& net,
                                            double messages,
                                            double bytes) noexcept
{
  return messages * net.latency +
         std::max(bytes / net.burst_rate, (bytes - net.burst) / net.bandwidth);
}

//! @brief Which collective sums a payload.
enum class route : unsigned char {
  ring,    //!< From neighbour to neighbour.
  direct,  //!< All-to-all to the owners of blocks, a sum there, all-gather.
  tree,    //!< Two binary trees, each for one half, pipelined.
};

//! @brief Messages in a row of an all-reduce: ring 2 (p - 1), direct 2, tree 2 ceil(log2 p).
[[nodiscard]] constexpr int all_reduce_messages(route way, int ranks) noexcept
{
  if (ranks < 2) { return 0; }
  if (way == route::ring) { return 2 * (ranks - 1); }
  if (way == route::direct) { return 2; }
  int levels = 0;
  while ((1LL << levels) < ranks) { ++levels; }
  return 2 * levels;
}

//! @brief Bytes that a rank sends in an all-reduce of n: 2 (p - 1) / p n, and 2 n in a tree.
[[nodiscard]] constexpr double all_reduce_traffic(route way, double bytes, int ranks) noexcept
{
  if (ranks < 2) { return 0; }
  return way == route::tree ? 2 * bytes : 2.0 * (ranks - 1) / ranks * bytes;
}

//! @brief One measurement of the probe: an exchange of so many bytes took so long.
struct timing {
  double bytes   = 0;  //!< That each rank sent, in all messages.
  double seconds = 0;
};

namespace detail {

struct line {
  double begin = 0;
  double slope = 0;
};

//! @brief Minimizes the sum of (begin + slope x - y)^2 / y^2. A level line where all x are the same.
[[nodiscard]] constexpr line fit_line(std::span<timing const> timings) noexcept
{
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (timing const& t : timings) {
    double const weight = 1 / (t.seconds * t.seconds);
    w += weight;
    x += weight * t.bytes;
    y += weight * t.seconds;
    xx += weight * t.bytes * t.bytes;
    xy += weight * t.bytes * t.seconds;
  }
  double const spread = w * xx - x * x;
  double const slope  = spread > 0 ? (w * xy - x * y) / spread : 0;
  return {(y - slope * x) / w, slope};
}

}  // namespace detail

//! @brief Fits latency, bandwidth, and what passes a token bucket at once.
//!
//! The first timing, whose bytes must be few enough to be nothing beside the latency, gives the latency. The bandwidth is that of a
//! line of least relative squares through the last of the others: as many as it comes within 5 % of, three at least, or two where
//! there are no more. Where the line begins below the latency, a token bucket let the first bytes pass at once: the burst. The
//! largest timing within it says how fast they pass. Where the line begins above, the latency is that of the line.
//!
//! @param timings   Of rising bytes, at least three; otherwise the network is unlimited.
//! @param messages  In a row, in each of them.
[[nodiscard]] constexpr network fit_network(std::span<timing const> timings, int messages) noexcept
{
  if (timings.size() < 3 || messages < 1) { return {}; }
  auto const rest   = timings.subspan(1);
  double const base = timings[0].seconds;
  for (std::size_t count = rest.size(); count >= 2; --count) {
    auto const last           = rest.last(count);
    auto const [begin, slope] = detail::fit_line(last);
    bool straight             = true;
    for (timing const& t : last) {
      double const off = (begin + slope * t.bytes) / t.seconds - 1;
      straight         = straight && off <= .05 && off >= -.05;
    }
    if (slope <= 0 || (!straight && count > 3)) { continue; }
    network found{.latency   = std::max(begin, base) / messages,
                  .bandwidth = 1 / slope,
                  .burst     = std::max(0.0, (base - begin) / slope)};
    for (timing const& t : rest) {
      if (t.bytes <= found.burst && t.seconds > base) {
        found.burst_rate = t.bytes / (t.seconds - base);
      }
    }
    return found;
  }
  return {.latency = base / messages};
}

}  // namespace model

}  // namespace tersum::inline v0
