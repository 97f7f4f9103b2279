// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A network from what was measured on it: latency and bandwidth of a straight line.

#pragma once

#include <tersum/model/collectives.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace tersum::inline v0 {

namespace model {

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
