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
                          cpu_executor const& exec          = {}) noexcept
    : context_(std::move(context)), timeout_(timeout), exec_(exec)
  {
  }

  [[nodiscard]] int rank() const noexcept { return context_ ? context_->rank : 0; }
  [[nodiscard]] int size() const noexcept { return context_ ? context_->size : 1; }
  [[nodiscard]] status check() const noexcept
  {
    if (!context_) { return {error_code::invalid_argument, "context is a null pointer"}; }
    if (timeout_.count() <= 0) {
      return {error_code::invalid_argument, "timeout must be above zero"};
    }
    if (failed_) {
      return {error_code::transport_failed,
              "an earlier call of Gloo failed or did not end in time: connect a new context"};
    }
    if (!refused_.ok()) { return refused_; }
    return exec_.check();
  }
  void refuse(status const& why) const noexcept { refused_ = why; }

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const noexcept
  {
    constexpr std::size_t bytes = sizeof value;
    return caught([&] {
      auto const in  = context_->createUnboundBuffer(&received, bytes);
      auto const out = context_->createUnboundBuffer(&value, bytes);
      in->recv(from, slot_of(0, bytes));
      out->send(to, slot_of(0, bytes));
      return out->waitSend(timeout_) && in->waitRecv(timeout_);
    });
  }

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const noexcept
  {
    std::size_t const here = blocks.bytes(rank());
    if (here > 0) {
      std::memcpy(
        received + here * static_cast<std::size_t>(rank()), data + blocks.begin_byte(rank()), here);
    }
    auto const part = [here](int from) {
      return block{here * static_cast<std::size_t>(from), here};
    };
    auto const sent = [&blocks](int to) { return block{blocks.begin_byte(to), blocks.bytes(to)}; };
    return with_all(1, data, sent, received, part);
  }

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const noexcept
  {
    auto const part = [&blocks](int rank) {
      return block{blocks.begin_byte(rank), blocks.bytes(rank)};
    };
    return with_all(
      2, data, [&](int) { return part(rank()); }, data, part);
  }

  //! Reduces a round in the wire. Operations that depend on the position are not offered.
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
      std::uint64_t const bytes = round.bytes();
      options.setTag(static_cast<std::uint32_t>(bytes ^ bytes >> 32));  // for the reason of slot_of
      ::gloo::allreduce(options);
      return true;
    });
  }

 private:
  struct block {
    std::size_t begin, bytes;
  };

  // What a message is: the kind of its call and its bytes. None of Gloo's collectives has this prefix. A message that is
  // longer than the memory for it would end the process in a thread of Gloo's.
  [[nodiscard]] static std::uint64_t slot_of(std::uint32_t kind, std::size_t bytes)
  {
    std::uint64_t const prefix = ::gloo::Slot::build(0x7e, 0);
    return prefix + (std::uint64_t{kind} << 52) + std::uint64_t{bytes};
  }

  // Sends sent(k) to each other rank k and receives received(k) from it, all at once. Gloo's own collectives go from rank
  // to rank, or in rounds, and leave the network idle between them.
  template <class Sent, class Received>
  [[nodiscard]] status with_all(std::uint32_t kind,
                                std::byte const* from,
                                Sent const& sent,
                                std::byte* to,
                                Received const& received) const noexcept
  {
    return caught([&] {
      int const n = size();
      auto const in =
        context_->createUnboundBuffer(to, received(n - 1).begin + received(n - 1).bytes);
      auto const out = context_->createUnboundBuffer(const_cast<std::byte*>(from),
                                                     sent(n - 1).begin + sent(n - 1).bytes);
      int arriving = 0, leaving = 0;
      for (int k = 1; k < n; ++k) {
        int const peer = (rank() + n - k) % n;
        block const b  = received(peer);
        if (b.bytes == 0) { continue; }
        in->recv(peer, slot_of(kind, b.bytes), b.begin, b.bytes);
        ++arriving;
      }
      for (int k = 1; k < n; ++k) {
        int const peer = (rank() + k) % n;
        block const b  = sent(peer);
        if (b.bytes == 0) { continue; }
        out->send(peer, slot_of(kind, b.bytes), b.begin, b.bytes);
        ++leaving;
      }
      auto const end = std::chrono::steady_clock::now() + timeout_;
      // Never less than a millisecond: Gloo, which ends a wait that was too long, then forgets all messages under way.
      auto const left = [&] {
        auto const rest = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
        return std::max(rest, std::chrono::milliseconds(1));
      };
      for (; arriving > 0; --arriving) {
        if (!in->waitRecv(left())) { return false; }
      }
      for (; leaving > 0; --leaving) {
        if (!out->waitSend(left())) { return false; }
      }
      return true;
    });
  }

  // Gloo tells errors by exceptions; nothing of tersum throws. After one the transport is done with.
  template <class Body>
  [[nodiscard]] status caught(Body const& body) const noexcept
  {
    if (status const s = check(); !s.ok()) { return s; }
    try {
      if (body()) { return {}; }
    } catch (...) {
    }
    failed_ = true;
    try {
      context_->closeConnections();
    } catch (...) {
    }
    return {error_code::transport_failed,
            "Gloo failed: a rank is gone, or did not come within the timeout"};
  }

  std::shared_ptr<::gloo::Context> context_;
  std::chrono::milliseconds timeout_;
  cpu_executor exec_;
  // Written by calls that are const: a transport is used by one thread.
  mutable status refused_;
  mutable bool failed_ = false;
};

static_assert(transport<gloo_transport>, "tersum: must model tersum::transport");

}  // namespace tersum::inline v0
