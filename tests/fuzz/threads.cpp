// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranks that are threads, each with threads of its own, under the thread sanitizer: `tersum.fuzz.threads [race]`. With
//! `race` threads of OpenMP write what others read, and the sanitizer must say so.

#include <tersum/interop/reduce_over.hpp>
#include <tersum/presets.hpp>
#include <tersum/single_process/loopback_transport.hpp>
#include <tersum/tersum.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int ranks = 3;
constexpr int steps = 3;

//! What one exchange of a rank is called with.
template <class Codec>
struct exchange_of {
  tersum::cpu_executor const& exec;
  tersum::plan<Codec> const& plan;
  std::vector<float> gradient;
  std::span<std::byte> state, workspace;
  tersum::loopback_transport const& over;
  std::span<std::byte> scratch;

  [[nodiscard]] auto reduce() const { return reduce_over(over, exec, scratch); }
};

//! All ranks' mean.
constexpr auto whole = [](auto& on, std::vector<float>& out) {
  out = on.gradient;
  return all_reduce_mean(on.exec, on.plan, out, on.state, on.workspace, on.reduce());
};

//! The mean in shards, and each rank's shard in codes at all ranks.
constexpr auto scatter = [](auto& on, std::vector<float>& out) {
  out.resize(on.plan.shard_size());
  return reduce_scatter_mean(
    on.exec, on.plan, on.gradient, out, on.state, on.workspace, on.reduce());
};
constexpr auto gather = [](auto& on, std::vector<float>& out) {
  out.resize(on.gradient.size());
  std::span const own =
    std::span{on.gradient}.subspan(on.plan.shard_begin(on.plan.ranks().rank), on.plan.shard_size());
  return all_gather_values(
    on.exec, on.plan, own, out, on.state, on.workspace, reduce_over(on.over, on.exec));
};

//! Makes exchanges and appends what each leaves to that of this rank. Whether all ranks end with the same bits is known to
//! them only if `equal`.
template <class Codec, class Exchange>
bool exchange(Codec const& codec, Exchange const& make, bool equal = true)
{
  constexpr std::size_t coordinates = 20011;
  tersum::loopback_group group{ranks};
  std::vector<std::vector<float>> left(ranks);
  std::atomic<bool> fine = true;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      tersum::loopback_transport const transport{group, rank};
      tersum::cpu_executor const exec{.threads = 3};
      auto const plan = codec.plan({.coordinates = coordinates}, {.size = ranks, .rank = rank});
      std::vector<std::byte> state(plan.state_bytes()), workspace(plan.workspace_bytes());
      std::vector<std::byte> scratch(scratch_bytes(plan));
      if (!agree_on(transport, plan, 7).ok() || !initialize(exec, plan, state, 7).ok()) {
        fine = false;
      }
      for (int step = 0; step < steps; ++step) {
        std::vector<float> gradient(coordinates), out;
        for (std::size_t i = 0; i < coordinates; ++i) {
          gradient[i] =
            static_cast<float>((i * 7919 + static_cast<std::size_t>(rank * 31 + step)) % 1009) -
            504;
        }
        exchange_of<Codec> on{
          exec, plan, std::move(gradient), state, workspace, transport, scratch};
        if (!make(on, out).ok()) { fine = false; }
        auto& mine = left[static_cast<std::size_t>(rank)];
        mine.insert(mine.end(), out.begin(), out.end());
      }
    });
  }
  for (std::thread& t : threads) { t.join(); }
  for (auto const& of_rank : left) {
    fine = fine && !of_rank.empty();
    if (equal) {
      fine =
        fine && std::memcmp(of_rank.data(), left[0].data(), of_rank.size() * sizeof(float)) == 0;
    }
  }
  return fine;
}

//! Threads of OpenMP of which one writes what another one reads.
bool race()
{
  std::vector<int> words(1000);
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 999; ++i) {
    words[static_cast<std::size_t>(i + 1)] = words[static_cast<std::size_t>(i)] + 1;
  }
  return words[999] >= 0;
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc > 1 && std::string_view{argv[1]} == "race") { return race() ? 0 : 1; }
  using namespace tersum::presets;
  bool const fine = exchange(fp16, whole) && exchange(rotated_sat4_ef, whole) &&
                    exchange(two_shot<2, tersum::error_feedback>{}, whole) &&
                    exchange(gathered<2, tersum::error_feedback>{}, whole) &&
                    exchange(sharded<2, tersum::error_feedback>{}, scatter, false) &&
                    exchange(values<4, tersum::error_feedback>{}, gather);
  std::printf(
    "%d ranks of 3 threads, %d steps: %s\n", ranks, steps, fine ? "equal bits" : "FAILED");
  return fine ? 0 : 1;
}
