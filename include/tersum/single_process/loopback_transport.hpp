// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranks that are threads of one process: the smallest transport, for tests and as an example.

#pragma once

#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/status.hpp>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>

namespace tersum::inline v0 {

//! @brief What the ranks of a loopback transport share. Must outlive them.
class loopback_group {
 public:
  static constexpr int max_ranks = 256;

  //! @param ranks    1 to 256.
  //! @param timeout  How long a rank waits for the others before its call fails. All calls after that fail, too.
  explicit loopback_group(int ranks, std::chrono::milliseconds timeout = std::chrono::seconds(30))
    : ranks_(ranks), timeout_(timeout)
  {
  }

  [[nodiscard]] int ranks() const noexcept { return ranks_; }

  //! Shows an array to the other ranks, and waits until all have shown theirs.
  [[nodiscard]] bool show(int rank, std::span<std::byte const> data)
  {
    shown_[static_cast<std::size_t>(rank)] = data;
    return meet();
  }

  //! What a rank has shown.
  [[nodiscard]] std::span<std::byte const> shown(int rank) const noexcept
  {
    return shown_[static_cast<std::size_t>(rank)];
  }

  //! Waits until all ranks have called it. Returns false if one did not come in time.
  [[nodiscard]] bool meet()
  {
    std::unique_lock lock{mutex_};
    if (broken_) { return false; }
    std::uint64_t const now = round_;
    if (++arrived_ == ranks_) {
      arrived_ = 0;
      ++round_;
      everyone_.notify_all();
      return true;
    }
    if (!everyone_.wait_for(lock, timeout_, [&] { return round_ != now || broken_; })) {
      broken_ = true;
      everyone_.notify_all();
    }
    return round_ != now;
  }

 private:
  int ranks_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable everyone_;
  std::array<std::span<std::byte const>, max_ranks> shown_{};
  std::uint64_t round_ = 0;
  int arrived_         = 0;
  bool broken_         = false;
};

//! @brief One rank of a `loopback_group`, used by one thread. It only moves bytes; `reduce_over` adds by
//! `schedule::direct`. *Errors*: those of `check`, and `transport_failed` where a rank does not come within the group's timeout.
class loopback_transport {
 public:
  loopback_transport(loopback_group& group, int rank) noexcept : group_(&group), rank_(rank) {}

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return group_->ranks(); }
  [[nodiscard]] status check() const noexcept
  {
    if (size() < 1 || size() > loopback_group::max_ranks || rank_ < 0 || rank_ >= size()) {
      return {error_code::invalid_argument,
              "rank must be between 0 and group.ranks() - 1, and group.ranks() between 1 and 256"};
    }
    return refused_;
  }
  void refuse(status const& why) const noexcept { refused_ = why; }

  //! The sender is the one rank that names this one: the word is fetched.
  [[nodiscard]] status exchange_word(int,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const
  {
    if (!group_->show(rank_, std::as_bytes(std::span{&value, 1}))) { return lost(); }
    auto const word  = group_->shown(from);
    bool const alike = word.size() == sizeof received;
    if (alike) { std::memcpy(&received, word.data(), sizeof received); }
    return left(alike);
  }

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const
  {
    std::size_t const begin = blocks.begin_byte(rank_), bytes = blocks.bytes(rank_);
    return fetch(data, blocks, [=](int from, std::byte const* theirs) {
      copy(received + static_cast<std::size_t>(from) * bytes, theirs + begin, bytes);
    });
  }

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const
  {
    return fetch(data, blocks, [&](int from, std::byte const* theirs) {
      std::size_t const at = blocks.begin_byte(from);
      if (from != rank_) { copy(data + at, theirs + at, blocks.bytes(from)); }
    });
  }

 private:
  static void copy(std::byte* to, std::byte const* from, std::size_t bytes) noexcept
  {
    if (bytes > 0) { std::memcpy(to, from, bytes); }
  }

  // Shows the data, and calls take(from, theirs) for every rank that has as many bytes.
  template <class Take>
  [[nodiscard]] status fetch(std::byte const* data,
                             rank_blocks const& blocks,
                             Take const& take) const
  {
    std::size_t const whole = blocks.begin_byte(blocks.ranks - 1) + blocks.bytes(blocks.ranks - 1);
    if (!group_->show(rank_, {data, whole})) { return lost(); }
    bool alike = true;
    for (int from = 0; from < size(); ++from) {
      bool const fits = group_->shown(from).size() == whole;
      if (fits) { take(from, group_->shown(from).data()); }
      alike = alike && fits;
    }
    return left(alike);
  }

  // Nobody goes on to overwrite what another rank still reads.
  [[nodiscard]] status left(bool alike) const
  {
    if (!group_->meet()) { return lost(); }
    if (alike) { return {}; }
    return {
      error_code::invalid_argument,
      "another rank has another number of bytes in this round, so the plans are unlike: call agree_on"};
  }

  [[nodiscard]] static status lost() noexcept
  {
    return {error_code::transport_failed,
            "a rank of the loopback group failed, or did not come within the timeout"};
  }

  loopback_group* group_;
  int rank_;
  mutable status refused_;  // a transport is used by one thread
};

static_assert(transport<loopback_transport>, "tersum: must model tersum::transport");

}  // namespace tersum::inline v0
