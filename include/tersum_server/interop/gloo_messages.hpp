// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Messages over Gloo, for a parameter server and its workers. Host memory; link with Gloo.

#pragma once

#include <tersum/status.hpp>
#include <tersum_server/detail/message_queue.hpp>
#include <tersum_server/message_transport.hpp>

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>
#include <gloo/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

namespace tersum::inline v0 {

//! @brief All ranks of a connected Gloo context.
//!
//! A thread of it receives all the time, since Gloo ends all connections of a rank whose wait was too long; so sending waits for nobody
//! who lives. A rank that dies or disconnects ends the messages of all: let all ranks keep their contexts until the server has ended.
//! Ignore SIGPIPE in the program. Collectives may go on over the same context. *Errors*: as `message_transport` has them; an exception
//! of Gloo is `transport_failed`.
class gloo_messages {
 public:
  //! @param context     Connected; kept alive.
  //! @param most_bytes  A rank that is sent a longer message fails.
  //! @param timeout     Of sending one message.
  explicit gloo_messages(std::shared_ptr<::gloo::Context> context,
                         std::size_t most_bytes            = std::size_t{1} << 30,
                         std::chrono::milliseconds timeout = std::chrono::seconds(30));
  gloo_messages(gloo_messages const&)            = delete;
  gloo_messages& operator=(gloo_messages const&) = delete;
  ~gloo_messages();

  [[nodiscard]] int rank() const noexcept { return context_ ? context_->rank : 0; }
  [[nodiscard]] int size() const noexcept { return context_ ? context_->size : 1; }
  [[nodiscard]] status check() const noexcept;

  [[nodiscard]] status send(int to, std::span<std::byte const> message);
  [[nodiscard]] status receive(std::span<std::byte> memory,
                               std::chrono::microseconds patience,
                               incoming& what);

 private:
  using buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

  // What the thread does, until it ends.
  void listen();
  [[nodiscard]] static std::uint64_t slot_of(std::uint32_t part);

  std::shared_ptr<::gloo::Context> context_;
  std::size_t most_bytes_;
  std::chrono::milliseconds timeout_;
  detail::message_queue queue_;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // of the two below
  bool ends_                                  = false;
  ::gloo::transport::UnboundBuffer* waits_in_ = nullptr;
  std::jthread thread_;
};

static_assert(message_transport<gloo_messages>, "tersum: must model tersum::message_transport");

}  // namespace tersum::inline v0

#include <tersum_server/interop/detail/gloo_messages.ipp>
