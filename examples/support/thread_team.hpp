// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Three collectives among threads, in the place of those of a communication library.

#pragma once

#include <barrier>
#include <cstddef>
#include <cstring>
#include <vector>

namespace support {

//! Ranks that are threads. Every rank calls the same collectives in the same order.
class thread_team {
 public:
  explicit thread_team(int ranks) : everyone_(ranks), shown_(static_cast<std::size_t>(ranks)) {}

  //! Reduces arrays in place. Every rank adds in the same order, so that all end with the same bits, whatever the operation.
  template <class T, class Op>
  void all_reduce(std::size_t rank, T* data, std::size_t count, Op op)
  {
    std::vector<T> sum(data, data + count);
    show(rank, data);
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] = static_cast<T const*>(shown_[0])[i];
      for (std::size_t r = 1; r < shown_.size(); ++r) {
        sum[i] = op(sum[i], static_cast<T const*>(shown_[r])[i]);
      }
    }
    everyone_.arrive_and_wait();
    std::memcpy(data, sum.data(), count * sizeof(T));
  }

  //! Part r of what each rank sends goes to rank r, which receives the parts in the order of the ranks.
  void all_to_all(std::size_t rank, void const* sent, void* received, std::size_t bytes_of_a_part)
  {
    show(rank, sent);
    for (std::size_t r = 0; r < shown_.size(); ++r) {
      auto const* const from = static_cast<std::byte const*>(shown_[r]) + rank * bytes_of_a_part;
      std::memcpy(static_cast<std::byte*>(received) + r * bytes_of_a_part, from, bytes_of_a_part);
    }
    everyone_.arrive_and_wait();
  }

  //! In place: before the call part r is valid on rank r, after it on all ranks.
  void all_gather(std::size_t rank, void* data, std::size_t bytes_of_a_part)
  {
    show(rank, data);
    for (std::size_t r = 0; r < shown_.size(); ++r) {
      std::size_t const at   = r * bytes_of_a_part;
      auto const* const from = static_cast<std::byte const*>(shown_[r]) + at;
      if (r != rank) { std::memcpy(static_cast<std::byte*>(data) + at, from, bytes_of_a_part); }
    }
    everyone_.arrive_and_wait();
  }

 private:
  void show(std::size_t rank, void const* data)
  {
    shown_[rank] = data;
    everyone_.arrive_and_wait();
  }

  std::barrier<> everyone_;
  std::vector<void const*> shown_;
};

}  // namespace support
