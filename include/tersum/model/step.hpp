// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Seconds of a step of synchronous SGD: computing, and communication that is overlapped with it bucket by bucket.
//!
//! The model is that of Agarwal, Wang, Venkataraman and Papailiopoulos, On the utility of gradient compression in distributed
//! training systems, 2022.

#pragma once

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

}  // namespace model

}  // namespace tersum::inline v0
