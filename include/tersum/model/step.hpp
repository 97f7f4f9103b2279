// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Seconds of a step of synchronous SGD: computing, and communication that is overlapped with it bucket by bucket.
//!
//! The model is that of Agarwal, Wang, Venkataraman and Papailiopoulos, On the utility of gradient compression in distributed
//! training systems, 2022.

#pragma once

#include <tersum/model/collectives.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace tersum::inline v0 {

namespace model {

//! @brief What a step computes on one rank that works alone.
struct computing {
  double forward  = 0;  //!< Seconds before the first gradient is there, and of the optimizer.
  double backward = 0;  //!< Seconds in which the gradients come.
  double overlap_slowdown =
    1;  //!< gamma: how much longer the backward pass takes beside communication; Agarwal et al. found 1.04 to 1.1.

  [[nodiscard]] constexpr double seconds() const noexcept { return forward + backward; }
};

//! @brief Seconds of a step without overlap.
[[nodiscard]] constexpr double step_seconds(computing const& work, double exchange) noexcept
{
  return work.seconds() + exchange;
}

//! @brief Seconds of a step whose gradients are exchanged while the backward pass goes on.
//!
//! Buckets go one after the other, each when its gradients are there and the one before it is done. Bucket k is ready when the
//! backward pass has made the share sizes[0] + ... + sizes[k] of all coordinates, as if time went with them.
//!
//! @param sizes      Coordinates of the buckets, in the order of the backward pass.
//! @param exchanges  Seconds of their exchanges, as many.
[[nodiscard]] constexpr double overlapped_step_seconds(computing const& work,
                                                       std::span<double const> sizes,
                                                       std::span<double const> exchanges) noexcept
{
  double all = 0;
  for (double const size : sizes) { all += size; }
  double const backward = work.backward * work.overlap_slowdown;
  double made           = 0;
  double free           = 0;  // when the bucket before is done
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    made += sizes[k];
    free = std::max(free, all > 0 ? backward * made / all : backward) + exchanges[k];
  }
  return work.forward + std::max(free, backward);
}

//! @brief The closed form of Agarwal et al. for `buckets` equal ones and a last one: max(gamma T, (k - 1) t) + t_last. It
//! takes the first bucket as ready at once; the last one cannot be hidden.
[[nodiscard]] constexpr double overlapped_step_seconds(computing const& work,
                                                       int buckets,
                                                       double exchange,
                                                       double last_exchange) noexcept
{
  return work.forward + std::max(work.backward * work.overlap_slowdown, (buckets - 1) * exchange) +
         last_exchange;
}

//! @brief What share of the throughput of as many ranks that need not communicate is left.
[[nodiscard]] constexpr double scaling_efficiency(computing const& work, double step) noexcept
{
  return step > 0 ? work.seconds() / step : 1;
}

//! @brief How many times fewer bytes would let a ring all-reduce hide behind the backward pass: near-linear scaling. 1 where it
//! does already, infinite where latency alone takes longer.
//! @param bytes  That a rank would give uncompressed to the collective.
[[nodiscard]] constexpr double required_ratio(computing const& work,
                                              network const& net,
                                              double bytes,
                                              int ranks) noexcept
{
  double const room =
    work.backward * work.overlap_slowdown - all_reduce_messages(route::ring, ranks) * net.latency;
  double const sent = all_reduce_traffic(route::ring, bytes, ranks) / net.bandwidth;
  if (room <= 0) { return unlimited; }
  return std::max(1.0, sent / room);
}

//! @brief The most that less communication can gain: step time over the time of computing alone, 1 for nothing.
[[nodiscard]] constexpr double most_speedup(computing const& work, double step) noexcept
{
  return work.seconds() > 0 ? step / work.seconds() : unlimited;
}

//! @name What if
//! The questions of Agarwal et al. in the form of changed inputs.
//! @{

//! @brief A network with so many times the bandwidth, and the same latency.
[[nodiscard]] constexpr network faster_network(network net, double times) noexcept
{
  net.bandwidth *= times;
  return net;
}

//! @brief A batch so many times as large: computing takes so many times as long, the gradient is as large as before.
[[nodiscard]] constexpr computing larger_batch(computing work, double times) noexcept
{
  work.forward *= times;
  work.backward *= times;
  return work;
}

//! @brief Processors so many times as fast: computing takes less, communication what it took.
[[nodiscard]] constexpr computing faster_computing(computing const& work, double times) noexcept
{
  return larger_batch(work, 1 / times);
}
//! @}

}  // namespace model

}  // namespace tersum::inline v0
