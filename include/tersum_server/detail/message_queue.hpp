// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Messages that have come and not been received yet.

#pragma once

#include <tersum_server/message_transport.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace tersum::inline v0::detail {

//! @brief Messages for one rank, in the order in which they came. Any thread puts and takes.
class message_queue {
 public:
  void put(int from, std::vector<std::byte> message)
  {
    {
      std::scoped_lock const lock{mutex_};
      messages_.emplace_back(from, std::move(message));
    }
    some_.notify_one();
  }

  //! Messages that nobody has taken.
  [[nodiscard]] std::size_t waiting()
  {
    std::scoped_lock const lock{mutex_};
    return messages_.size();
  }

  //! As `receive` of `message_transport`.
  void take(std::span<std::byte> memory, std::chrono::microseconds patience, incoming& what)
  {
    what = {};
    std::pair<int, std::vector<std::byte>> first;
    {
      std::unique_lock lock{mutex_};
      auto const most = std::min<std::chrono::microseconds>(patience, longest_wait);
      if (!some_.wait_for(lock, most, [this] { return !messages_.empty(); })) { return; }
      first = std::move(messages_.front());
      messages_.pop_front();
    }
    what = {first.first, first.second.size()};
    if (!first.second.empty() && first.second.size() <= memory.size()) {
      std::memcpy(memory.data(), first.second.data(), first.second.size());
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<std::pair<int, std::vector<std::byte>>> messages_;
};

}  // namespace tersum::inline v0::detail
