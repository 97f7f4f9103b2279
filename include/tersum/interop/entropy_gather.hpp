// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The mean of gradients in codes of one step, entropy-coded, over slow links. For the CPU.

#pragma once

#include <tersum/exchange/rank_blocks.hpp>
#include <tersum/interop/transport.hpp>
#include <tersum/quantize/entropy_coder.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tersum::inline v0 {

//! @brief Every rank sends its gradient to all others in codes of as few bits as they have information, and adds up what it gets.
//!
//! Each rank rounds its gradient to multiples of one step, to the nearest, and sends the codes through `code_model`: chunks of small
//! coordinates become zeros and cost next to nothing, large coordinates get long codes. Even steps with ideal entropy coding are, at
//! high rates, within a quarter of a bit of the least that any code needs (Gish and Pierce 1968). It takes a thread tens to hundreds of
//! nanoseconds for a coordinate, and no GPU does it, so it is for few ranks and slow networks: see docs/transports.md.
//!
//! A message has at most the budget, and less where even the smallest step, 2^-23 of the largest magnitude, needs less. Rounding is
//! not random, so a mean is biased; pass a residual, and what a step of training lost is added to the next gradient.
//! Means are the same bits on all ranks. A gradient that is not finite somewhere makes the mean NaN everywhere, and leaves the
//! residual of its rank as it was. Magnitudes below 2^-126 are zero. It is one thread's work, and it allocates memory as it is needed and keeps it.
//! @tparam Over  Of host memory, such as `mpi_transport`, `gloo_transport` or `loopback_transport`.
template <transport Over>
class entropy_gather {
 public:
  //! @param over  Must outlive this.
  //! @param bits  Per coordinate of one rank's message, its step included: above 0, at most 32. Messages may always have 256 bytes.
  explicit entropy_gather(Over const& over, double bits) noexcept : over_(&over), bits_(bits) {}

  //! `invalid_argument` if the bits are none that it takes, or else what the transport says.
  [[nodiscard]] status check() const noexcept;

  //! @brief Turns the gradient of each rank into the mean over the ranks.
  //!
  //! A message that is not what `entropy_gather` made of as many coordinates is `transport_failed`; of messages that were disturbed
  //! at random one in 65536 is taken for a good one. The gradient is then undefined.
  //! @param gradient  Of as many coordinates on all ranks.
  //! @param residual  Of as many coordinates, or empty: what this rank lost, which is added to the gradient first. Zeros at first.
  [[nodiscard]] status all_reduce_mean(std::span<float> gradient,
                                       std::span<float> residual = {}) const;

  //! Bytes that this rank sent, to all others, since it was made.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return sent_; }

 private:
  static_assert(
    !requires(Over const& over) { over.check_stream(nullptr); },
    "tersum: entropy_gather codes host memory, and this transport has a stream of a device");

  // Makes the message of a gradient, and what is lost of it.
  void encode(std::span<float const> gradient, std::span<float> residual) const;
  [[nodiscard]] status exchange(std::size_t coordinates) const;

  Over const* over_;
  double bits_;
  // Written by calls that are const: a transport is used by one thread.
  mutable std::vector<std::vector<std::byte>> messages_;
  mutable std::vector<float> values_, sample_;
  mutable std::uint64_t sent_ = 0;
};

}  // namespace tersum::inline v0

#include <tersum/interop/detail/entropy_gather.ipp>
