// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Messages between threads of one process, which can be lost or held up: for tests, and a server beside its workers.

#pragma once

#include <tersum/status.hpp>
#include <tersum_server/detail/message_queue.hpp>
#include <tersum_server/message_transport.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace tersum::inline v0 {

//! What becomes of a message.
enum class delivery {
  now,
  never,  //!< It is lost.
  held,   //!< It arrives when `loopback_post::release` is called.
};

//! @brief What the ranks of loopback messages share. Must outlive them.
class loopback_post {
 public:
  //! Decides about a message; called by the threads that send, one at a time.
  using judge = std::function<delivery(int from, int to, std::span<std::byte const> message)>;

  //! @param ranks  From 1.
  //! @param fate   Empty: all messages arrive.
  explicit loopback_post(int ranks, judge fate = {})
    : queues_(static_cast<std::size_t>(ranks < 1 ? 1 : ranks)), fate_(std::move(fate))
  {
  }

  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(queues_.size()); }

  void send(int from, int to, std::span<std::byte const> message)
  {
    std::scoped_lock const lock{mutex_};
    delivery const how = fate_ ? fate_(from, to, message) : delivery::now;
    if (how == delivery::never) { return; }
    std::vector<std::byte> copy(message.begin(), message.end());
    if (how == delivery::held) {
      held_.push_back({from, to, std::move(copy)});
    } else {
      queues_[static_cast<std::size_t>(to)].put(from, std::move(copy));
    }
  }

  //! Delivers all that is held, in the order in which it was sent, or the last one first.
  void release(bool last_first = false)
  {
    std::scoped_lock const lock{mutex_};
    if (last_first) { std::reverse(held_.begin(), held_.end()); }
    for (letter& l : held_) {
      queues_[static_cast<std::size_t>(l.to)].put(l.from, std::move(l.message));
    }
    held_.clear();
  }

  [[nodiscard]] detail::message_queue& queue(int rank)
  {
    return queues_[static_cast<std::size_t>(rank)];
  }

 private:
  struct letter {
    int from, to;
    std::vector<std::byte> message;
  };

  std::deque<detail::message_queue> queues_;
  std::mutex mutex_;
  judge fate_;
  std::vector<letter> held_;
};

//! @brief One rank of a `loopback_post`, used by one thread. *Errors*: a rank that the post does not have.
class loopback_messages {
 public:
  loopback_messages(loopback_post& post, int rank) noexcept : post_(&post), rank_(rank) {}

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return post_->ranks(); }
  [[nodiscard]] status check() const noexcept
  {
    if (rank_ >= 0 && rank_ < size()) { return {}; }
    return {error_code::invalid_argument, "rank must be between 0 and post.ranks() - 1"};
  }

  [[nodiscard]] status send(int to, std::span<std::byte const> message) const
  {
    if (status const s = check(); !s.ok()) { return s; }
    if (to < 0 || to >= size()) {
      return {error_code::invalid_argument, "to must be between 0 and post.ranks() - 1"};
    }
    post_->send(rank_, to, message);
    return {};
  }

  [[nodiscard]] status receive(std::span<std::byte> memory,
                               std::chrono::microseconds patience,
                               incoming& what) const
  {
    if (status const s = check(); !s.ok()) { return s; }
    post_->queue(rank_).take(memory, patience, what);
    return {};
  }

 private:
  loopback_post* post_;
  int rank_;
};

static_assert(message_transport<loopback_messages>, "tersum: must model tersum::message_transport");

}  // namespace tersum::inline v0
