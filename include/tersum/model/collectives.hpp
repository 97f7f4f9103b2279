// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Seconds that collectives take: latency of the messages in a row, bytes over bandwidth.
//!
//! There are p ranks, each of which gives n bytes to the collective. The forms are those of Thakur, Rabenseifner and Gropp (Optimization of collective
//! communication operations in MPICH, 2005), the tree is that of Sanders, Speck and Traeff (Two-tree algorithms for full
//! bandwidth broadcast, reduction and scan, 2009). One rank takes no time.

#pragma once

#include <algorithm>
#include <limits>

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

}  // namespace model

}  // namespace tersum::inline v0
