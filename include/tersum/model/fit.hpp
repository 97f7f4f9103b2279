// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A network from what was measured on it: latency and bandwidth of a straight line.

#pragma once

#include <tersum/model/collectives.hpp>

#include <algorithm>
#include <span>

namespace tersum::inline v0 {

namespace model {

//! @brief One measurement of the probe: an exchange of so many bytes took so long.
struct timing {
  double bytes   = 0;  //!< That each rank sent, in all messages.
  double seconds = 0;
};

//! @brief Fits latency, bandwidth and burst.
//!
//! The bandwidth is that of the line of least relative squares through all timings but the first, whose bytes must be few
//! enough to be nothing beside the latency; the first gives the latency. Where the line begins below it, a token bucket let the
//! first bytes pass at once: the burst. Where it begins above, the latency is that of the line.
//!
//! @param timings   Of rising bytes, at least three; otherwise the network is unlimited.
//! @param messages  In a row, in each of them.
[[nodiscard]] constexpr network fit_network(std::span<timing const> timings, int messages) noexcept
{
  network net;
  if (timings.size() < 3 || messages < 1) { return net; }
  // Minimizes the sum of (begin + slope x - y)^2 / y^2.
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (timing const& t : timings.subspan(1)) {
    double const weight = 1 / (t.seconds * t.seconds);
    w += weight;
    x += weight * t.bytes;
    y += weight * t.seconds;
    xx += weight * t.bytes * t.bytes;
    xy += weight * t.bytes * t.seconds;
  }
  double const spread = w * xx - x * x;
  double const slope  = spread > 0 ? (w * xy - x * y) / spread : 0;
  double const begin  = (y - slope * x) / w;
  double const least  = timings[0].seconds;
  if (slope <= 0) {
    net.latency = least / messages;
    return net;
  }
  net.bandwidth = 1 / slope;
  net.latency   = std::max(begin, least) / messages;
  net.burst     = std::max(0.0, (least - begin) * net.bandwidth);
  return net;
}

}  // namespace model

}  // namespace tersum::inline v0
