// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gloo as a transport. Host memory; link with Gloo.

#pragma once

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/status.hpp>

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/context.h>
#include <gloo/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tersum::inline v0 {

//! @brief All ranks of a connected Gloo context.
//!
//! Gloo applies every reduction as a function of two arrays: all operations go in the wire, in its ring, on the executor
//! given here. What Gloo throws comes back as a status: a peer that died or did not come within the timeout. After that
//! connect a new context. The program should ignore SIGPIPE: Gloo writes to sockets whose other end may be gone. A
//! transport is used by one thread at a time, and several of them need contexts of their own.
class gloo_transport {
 public:
  //! @param context  Connected; kept alive by the transport.
  //! @param timeout  Of each collective. Gloo's own of the context is not used.
  //! @param exec     Threads that add.
  explicit gloo_transport(std::shared_ptr<::gloo::Context> context,
                          std::chrono::milliseconds timeout = std::chrono::seconds(30),
                          cpu_executor const& exec          = {}) noexcept
    : context_(std::move(context)), timeout_(timeout), exec_(exec)
  {
  }

  [[nodiscard]] int rank() const noexcept { return context_ ? context_->rank : 0; }
  [[nodiscard]] int size() const noexcept { return context_ ? context_->size : 1; }
  [[nodiscard]] status check() const noexcept
  {
    if (!context_) { return {error_code::invalid_argument, "the Gloo context is null"}; }
    if (timeout_.count() <= 0) {
      return {error_code::invalid_argument, "the timeout of Gloo must be above zero"};
    }
    return exec_.check();
  }

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const noexcept
  {
    return send_receive(to,
                        reinterpret_cast<std::byte const*>(&value),
                        sizeof value,
                        from,
                        reinterpret_cast<std::byte*>(&received),
                        sizeof received);
  }

  [[nodiscard]] status send_receive(int to,
                                    std::byte const* sent,
                                    std::size_t sent_bytes,
                                    int from,
                                    std::byte* received,
                                    std::size_t received_bytes) const noexcept
  {
    return caught([&] {
      // None of Gloo's collectives has this prefix.
      std::uint64_t const slot = ::gloo::Slot::build(0x7e, 0);
      auto const in            = context_->createUnboundBuffer(received, received_bytes);
      auto const out = context_->createUnboundBuffer(const_cast<std::byte*>(sent), sent_bytes);
      if (received_bytes > 0) { in->recv(from, slot); }
      if (sent_bytes > 0) { out->send(to, slot); }
      return (sent_bytes == 0 || out->waitSend(timeout_)) &&
             (received_bytes == 0 || in->waitRecv(timeout_));
    });
  }

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const noexcept
  {
    return caught([&] {
      auto const n = static_cast<std::size_t>(blocks.ranks);
      std::vector<std::int64_t> sizes(n);
      std::vector<std::int64_t> const here(n, static_cast<std::int64_t>(blocks.bytes(rank())));
      for (std::size_t k = 0; k < n; ++k) {
        sizes[k] = static_cast<std::int64_t>(blocks.bytes(static_cast<int>(k)));
      }
      ::gloo::AlltoallvOptions options(context_);
      options.setInput(reinterpret_cast<char*>(const_cast<std::byte*>(data)), sizes);
      options.setOutput(reinterpret_cast<char*>(received), here);
      options.setTimeout(timeout_);
      ::gloo::alltoallv(options);
      return true;
    });
  }

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const noexcept
  {
    return caught([&] {
      std::vector<std::size_t> sizes(static_cast<std::size_t>(blocks.ranks));
      for (int k = 0; k < blocks.ranks; ++k) {
        sizes[static_cast<std::size_t>(k)] = blocks.bytes(k);
      }
      ::gloo::AllgathervOptions options(context_);
      options.setOutput(reinterpret_cast<char*>(data), sizes);
      options.setTimeout(timeout_);
      ::gloo::allgatherv(options);
      return true;
    });
  }

  //! Every operation but those that depend on the position.
  template <reduce_op Op>
  requires(!has_combine_at<Op>) [[nodiscard]] status
    all_reduce(wire<Op> const& round) const noexcept
  {
    using element = typename Op::element;
    return caught([&] {
      ::gloo::AllreduceOptions options(context_);
      options.setOutput(round.data, round.count);
      options.setReduceFunction([this](void* to, void const* a, void const* b, std::size_t count) {
        static_cast<void>(exec_.reduce(Op{},
                                       static_cast<element*>(to),
                                       static_cast<element const*>(a),
                                       static_cast<element const*>(b),
                                       count));
      });
      options.setTimeout(timeout_);
      ::gloo::allreduce(options);
      return true;
    });
  }

 private:
  // Gloo tells errors by exceptions; nothing of tersum throws.
  template <class Body>
  [[nodiscard]] static status caught(Body const& body) noexcept
  {
    try {
      if (body()) { return {}; }
    } catch (...) {
    }
    return {error_code::transport_failed,
            "Gloo failed: a rank is gone, or did not come within the timeout"};
  }

  std::shared_ptr<::gloo::Context> context_;
  std::chrono::milliseconds timeout_;
  cpu_executor exec_;
};

static_assert(transport<gloo_transport>, "tersum: must model tersum::transport");

}  // namespace tersum::inline v0
