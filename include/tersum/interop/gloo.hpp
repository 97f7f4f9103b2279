// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gloo as a transport. Host memory; link with Gloo.

#pragma once

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/status.hpp>

#include <gloo/allreduce.h>
#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>
#include <gloo/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace tersum::inline v0 {

//! @brief All ranks of a connected Gloo context.
//!
//! Gloo applies a reduction as a function of two arrays, so all operations go in the wire, in Gloo's ring; the function runs
//! on the executor given here. *Errors*: an exception of Gloo comes back as a status: a peer died or did not come within the
//! timeout. Then the connections of the context are closed, so that those who wait for this rank are told at once, and every
//! further call fails: connect a new context. Messages of unlike sizes never meet; ranks that wait for another size end with
//! their timeouts. Ignore SIGPIPE in the program, because Gloo writes to sockets whose other end may be gone. Use a transport
//! from one thread at a time; several transports need a context each. The members are those that `transport` asks for.
//!
//! @par Example
//! @snippet examples/transports/gloo_all_reduce.cpp transport
class gloo_transport {
 public:
  //! @param context  Connected; kept alive by the transport.
  //! @param timeout  Of each collective; it replaces the context's own.
  //! @param exec     Whose threads add.
  explicit gloo_transport(std::shared_ptr<::gloo::Context> context,
                          std::chrono::milliseconds timeout = std::chrono::seconds(30),
                          cpu_executor const& exec          = {}) noexcept;

  [[nodiscard]] int rank() const noexcept { return context_ ? context_->rank : 0; }
  [[nodiscard]] int size() const noexcept { return context_ ? context_->size : 1; }
  [[nodiscard]] status check() const noexcept;
  void refuse(status const& why) const noexcept { refused_ = why; }

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const noexcept;

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const noexcept;

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const noexcept;

  //! Reduces a round in the wire. Operations that depend on the position are not offered.
  template <reduce_op Op>
  requires(!has_combine_at<Op>) [[nodiscard]] status
    all_reduce(wire<Op> const& round) const noexcept;

 private:
  struct block {
    std::size_t begin, bytes;
  };

  // What a message is: the kind of its call and its bytes. None of Gloo's collectives has this prefix. A message that is
  // longer than the memory for it would end the process in a thread of Gloo's.
  [[nodiscard]] static std::uint64_t slot_of(std::uint32_t kind, std::size_t bytes);

  // Sends sent(k) to each other rank k and receives received(k) from it, all at once. Gloo's own collectives go from rank
  // to rank, or in rounds, and leave the network idle between them.
  template <class Sent, class Received>
  [[nodiscard]] status with_all(std::uint32_t kind,
                                std::byte const* from,
                                Sent const& sent,
                                std::byte* to,
                                Received const& received) const noexcept;

  // Gloo tells errors by exceptions; nothing of tersum throws. After one the transport is done with.
  template <class Body>
  [[nodiscard]] status caught(Body const& body) const noexcept;

  std::shared_ptr<::gloo::Context> context_;
  std::chrono::milliseconds timeout_;
  cpu_executor exec_;
  // Written by calls that are const: a transport is used by one thread.
  mutable status refused_;
  mutable bool failed_ = false;
};

static_assert(transport<gloo_transport>, "tersum: must model tersum::transport");

}  // namespace tersum::inline v0

#include <tersum/interop/detail/gloo.ipp>
