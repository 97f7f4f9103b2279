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
#include <utility>
#include <vector>

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
                         std::chrono::milliseconds timeout = std::chrono::seconds(30))
    : context_(std::move(context)), most_bytes_(most_bytes), timeout_(timeout)
  {
    if (check().ok() && size() > 1) {
      thread_ = std::jthread{[this] { listen(); }};
    }
  }
  gloo_messages(gloo_messages const&)            = delete;
  gloo_messages& operator=(gloo_messages const&) = delete;
  ~gloo_messages()
  {
    std::scoped_lock const lock{mutex_};
    ends_ = true;
    if (waits_in_ != nullptr) { waits_in_->abortWaitRecv(); }
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
              "Gloo failed: a rank is gone, or a message was not taken within the timeout"};
    }
    return {};
  }

  [[nodiscard]] status send(int to, std::span<std::byte const> message)
  {
    if (status const s = check(); !s.ok()) { return s; }
    if (to < 0 || to >= size()) {
      return {error_code::invalid_argument, "to must be a rank of the context"};
    }
    if (to == rank()) {
      queue_.put(to, {message.begin(), message.end()});
      return {};
    }
    try {
      std::uint64_t bytes = message.size();
      buffer const length = context_->createUnboundBuffer(&bytes, sizeof bytes);
      buffer const out =
        context_->createUnboundBuffer(const_cast<std::byte*>(message.data()), message.size());
      length->send(to, slot_of(0));
      if (bytes > 0) { out->send(to, slot_of(1)); }
      if (length->waitSend(timeout_) && (bytes == 0 || out->waitSend(timeout_))) { return {}; }
    } catch (...) {
    }
    failed_ = true;
    return check();
  }
  [[nodiscard]] status receive(std::span<std::byte> memory,
                               std::chrono::microseconds patience,
                               incoming& what)
  {
    if (!context_) { return check(); }
    // What came before a failure is still good.
    queue_.take(memory, failed_ ? std::chrono::microseconds{} : patience, what);
    return what.from >= 0 ? status{} : check();
  }

 private:
  using buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

  // What the thread does, until it ends.
  void listen()
  {
    std::vector<int> others;
    for (int other = 0; other < size(); ++other) {
      if (other != rank()) { others.push_back(other); }
    }
    // False if it shall end.
    auto const wait = [this](::gloo::transport::UnboundBuffer& in, int* from) {
      {
        std::scoped_lock const lock{mutex_};
        if (ends_) { return false; }
        waits_in_ = &in;
      }
      bool const came = in.waitRecv(from, detail::longest_wait);
      std::scoped_lock const lock{mutex_};
      waits_in_ = nullptr;
      return came && !ends_;
    };
    try {
      while (true) {
        // A message of which the length is not known would end the process, so its length comes first.
        std::uint64_t bytes = 0;
        int from            = -1;
        buffer const length = context_->createUnboundBuffer(&bytes, sizeof bytes);
        length->recv(others, slot_of(0));
        if (!wait(*length, &from)) { return; }
        if (bytes > most_bytes_) { break; }
        std::vector<std::byte> message(bytes);
        if (bytes > 0) {
          buffer const in = context_->createUnboundBuffer(message.data(), bytes);
          in->recv(from, slot_of(1));
          if (!wait(*in, nullptr)) { return; }
        }
        queue_.put(from, std::move(message));
      }
    } catch (...) {
      std::scoped_lock const lock{mutex_};
      waits_in_ = nullptr;
    }
    failed_ = true;
  }
  // Other than those of gloo_transport, and of Gloo's collectives.
  [[nodiscard]] static std::uint64_t slot_of(std::uint32_t part)
  {
    return std::uint64_t{::gloo::Slot::build(0x7d, part)};
  }

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
