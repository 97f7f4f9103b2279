// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A collective of one's own that takes every kind of round: sums and maxima, lanes of several widths, parts that are
//! exchanged and gathered. Ranks are threads here; put your transport's three calls in the place of `team`.

#include <tersum/tersum.hpp>

#include <barrier>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

constexpr int ranks        = 3;
constexpr std::size_t size = 100'000;

// Three collectives among threads. Every rank calls the same ones in the same order.
struct team {
  std::barrier<> everyone{ranks};
  void* shown[ranks]{};

  // The ranks are added in the same order for all, so that all end with the same bits, whatever the operation.
  template <class T, class Op>
  void all_reduce(int rank, T* data, std::size_t count, Op op)
  {
    std::vector<T> sum(data, data + count);
    shown[rank] = data;
    everyone.arrive_and_wait();
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] = static_cast<T*>(shown[0])[i];
      for (int r = 1; r < ranks; ++r) { sum[i] = op(sum[i], static_cast<T*>(shown[r])[i]); }
    }
    everyone.arrive_and_wait();
    std::memcpy(data, sum.data(), count * sizeof(T));
  }

  // Part r of what each rank sends goes to rank r, which receives them in the order of the ranks.
  void all_to_all(int rank, void const* sent, void* received, std::size_t bytes_of_a_part)
  {
    auto const part = [&](int r) { return static_cast<std::size_t>(r) * bytes_of_a_part; };
    shown[rank]     = const_cast<void*>(sent);
    everyone.arrive_and_wait();
    for (int r = 0; r < ranks; ++r) {
      auto const* const from = static_cast<std::byte const*>(shown[r]) + part(rank);
      std::memcpy(static_cast<std::byte*>(received) + part(r), from, bytes_of_a_part);
    }
    everyone.arrive_and_wait();
  }

  // In place: before it part r is valid on rank r, after it on all ranks.
  void all_gather(int rank, void* data, std::size_t bytes_of_a_part)
  {
    shown[rank] = data;
    everyone.arrive_and_wait();
    for (int r = 0; r < ranks; ++r) {
      std::size_t const at   = static_cast<std::size_t>(r) * bytes_of_a_part;
      auto const* const from = static_cast<std::byte const*>(shown[r]) + at;
      if (r != rank) { std::memcpy(static_cast<std::byte*>(data) + at, from, bytes_of_a_part); }
    }
    everyone.arrive_and_wait();
  }
};

template <class Codec>
bool average(team& mine, int rank, char const* name, Codec const& codec)
{
  // [reduce]
  auto const reduce = [&](auto const& round) {
    if constexpr (requires { round.op; }) {  // wire: an array that is reduced
      using op = decltype(round.op);
      if constexpr (tersum::has_combine_at<
                      op>) {  // lanes of several widths: one operation after the other
        round.op.for_each_part(round.count, [&](auto lanes, std::size_t begin, std::size_t end) {
          mine.all_reduce(rank, round.data + begin, end - begin, lanes);
        });
      } else {
        mine.all_reduce(rank, round.data, round.count, round.op);
      }
    } else if constexpr (requires { round.sent; }) {  // scatter_wire: parts that are exchanged
      mine.all_to_all(rank, round.sent, round.received, round.bytes());
    } else {  // gather_wire: parts that are gathered
      mine.all_gather(rank, round.gathered, round.bytes());
    }
  };
  // [reduce]

  auto const plan = codec.plan({.coordinates = size}, {.size = ranks, .rank = rank});
  std::vector<tersum::word4> state(plan.state_bytes() / sizeof(tersum::word4) + 1);
  std::vector<tersum::word4> work(plan.workspace_bytes() / sizeof(tersum::word4) + 1);
  std::vector<float> gradient(size, 1.0f + static_cast<float>(rank));  // the mean of 1, 2, 3 is 2
  tersum::cpu_executor const exec{.threads = 1};
  auto const state_bytes = std::as_writable_bytes(std::span{state});
  tersum::status outcome = initialize(exec, plan, state_bytes, 42);
  if (outcome.ok()) {
    outcome = all_reduce_mean(
      exec, plan, gradient, state_bytes, std::as_writable_bytes(std::span{work}), reduce);
  }
  double error = 0;
  for (float const g : gradient) { error += (g - 2.0) * (g - 2.0) / (4.0 * size); }
  if (rank == 0) { std::printf("%s: error %.4f %s\n", name, error, outcome.message.data()); }
  return outcome.ok() && error < 0.1;
}

int main()
{
  team everyone;
  bool good[ranks]{};
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        bool const lanes = average(everyone, rank, "lanes", tersum::presets::allocated_sat_4);
        good[rank] = average(everyone, rank, "two shots", tersum::presets::two_shot_4) && lanes;
      });
    }
  }
  return good[0] && good[1] && good[2] ? 0 : 1;
}
