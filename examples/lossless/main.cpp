// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What Zstandard saves of each codec's wire, on gradients of files: usage: lossless FOLDER RANKS [LEVEL]
//!
//! Each set of files `<set>_worker<k>.npy` is exchanged by ranks that are threads. Bits are what leaves a rank, on average, for each
//! coordinate: by the codec, and after Zstandard. The last column is the speed of a network, in Gbit/s, below which Zstandard
//! saves more time than it takes: bits saved over the time that it adds, the least of several exchanges with and without it.

#include "compare_codecs/errors.hpp"
#include "compare_codecs/gradient_sets.hpp"

#include <tersum/baseline/baseline.hpp>
#include <tersum/interop/zstd.hpp>
#include <tersum/single_process/loopback_transport.hpp>
#include <tersum/tersum.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int steps = 5;

using gradients = std::vector<std::vector<float>>;

// What a rank hands back.
struct outcome {
  tersum::status status{};
  double nanoseconds = 0;  // the least of several exchanges
};

template <class Codec, class Over>
outcome exchange(Codec const& codec, Over const& over, std::vector<float>& gradient)
{
  tersum::cpu_executor const exec{.threads = 1};
  auto const plan = codec.plan({gradient.size()}, {.size = over.size(), .rank = over.rank()});
  std::vector<tersum::word4> state(plan.state_bytes() / 16 + 1);
  std::vector<tersum::word4> workspace(plan.workspace_bytes() / 16 + 1);
  std::vector<tersum::word4> scratch(scratch_bytes(plan) / 16 + 1);
  auto const bytes   = [](auto& words) { return std::as_writable_bytes(std::span{words}); };
  auto const given   = gradient;
  tersum::status now = agree_on(over, plan, 42);
  outcome best{.nanoseconds = std::numeric_limits<double>::infinity()};
  for (int step = 0; step < steps && now.ok(); ++step) {
    gradient = given;
    now      = initialize(exec, plan, bytes(state), 42);
    if (!now.ok()) { break; }
    auto const begin = std::chrono::steady_clock::now();
    now              = all_reduce_mean(exec,
                          plan,
                          gradient,
                          bytes(state),
                          bytes(workspace),
                          reduce_over(over, exec, bytes(scratch)));
    std::chrono::duration<double, std::nano> const passed =
      std::chrono::steady_clock::now() - begin;
    best.nanoseconds = std::min(best.nanoseconds, passed.count());
  }
  best.status = now;
  return best;
}

// Calls body(rank, its transport) on a thread for each rank.
template <class Body>
void on_all_ranks(std::size_t ranks, Body const& body)
{
  tersum::loopback_group group{static_cast<int>(ranks)};
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      body(rank, tersum::loopback_transport{group, static_cast<int>(rank)});
    });
  }
}

template <class Codec>
void try_codec(char const* name, Codec const& codec, gradients const& in, int level)
{
  std::size_t const ranks = in.size();
  std::vector<outcome> plain(ranks), smaller(ranks);
  std::vector<double> given(ranks), sent(ranks);
  gradients means = in;
  on_all_ranks(ranks, [&](std::size_t rank, auto const& over) {
    plain[rank] = exchange(codec, over, means[rank]);
  });
  gradients const without = std::exchange(means, in);
  on_all_ranks(ranks, [&](std::size_t rank, auto const& over) {
    tersum::zstd_transport const around{over, level};
    smaller[rank] = exchange(codec, around, means[rank]);
    given[rank]   = static_cast<double>(around.bytes_given()) / steps;
    sent[rank]    = static_cast<double>(around.bytes_sent()) / steps;
  });
  double all_given = 0, all_sent = 0, added = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (auto const* one : {&plain[rank], &smaller[rank]}) {
      if (!one->status.ok()) {
        std::printf("  %-32s %s\n", name, one->status.message.data());
        return;
      }
    }
    all_given += given[rank];
    all_sent += sent[rank];
    added += smaller[rank].nanoseconds - plain[rank].nanoseconds;
  }
  if (means != without) { std::printf("  %-32s differs with Zstandard\n", name); }
  // Where nothing is saved or noise is all that was measured, no speed says anything.
  bool const says   = all_sent < all_given && added > 0;
  double const bits = 8 / static_cast<double>(ranks * in[0].size());
  std::vector<double> const estimate(means[0].begin(), means[0].end());
  std::printf("  %-32s %6.2f %6.2f   %-8.2g %5.1f\n",
              name,
              all_given * bits,
              all_sent * bits,
              compare_codecs::error_of(compare_codecs::average_ranks(in).mean, estimate),
              says ? 8 * (all_given - all_sent) / added : 0.0);
}

template <int Bits>
using groups = tersum::group_absmax<Bits, 128, tersum::linear_levels, tersum::bfloat16_scale>;
template <int Bits>
using gathered_groups =
  tersum::gathered_codec<tersum::fixed_chunks<2048>, tersum::no_rotation, groups<Bits>>;
template <int Bits>
using two_shot_groups =
  tersum::two_shot_codec<tersum::fixed_chunks<2048>, tersum::no_rotation, groups<Bits>>;

}  // namespace

int main(int argc, char** argv)
{
  int const ranks = argc >= 3 ? std::atoi(argv[2]) : 0;
  int const level = argc >= 4 ? std::atoi(argv[3]) : 1;
  if (ranks < 1) {
    std::fprintf(stderr, "usage: lossless FOLDER RANKS [LEVEL]\n");
    return 2;
  }
  auto const sets = compare_codecs::list_gradient_sets(argv[1], ranks);
  if (!sets) {
    std::fprintf(stderr, "lossless: %s\n", sets.error.c_str());
    return 2;
  }
  namespace p = tersum::presets;
  for (auto const& set : sets.value) {
    auto const read = compare_codecs::read_gradient_set(set);
    if (!read) {
      std::fprintf(stderr, "lossless: %s\n", read.error.c_str());
      return 2;
    }
    auto const try_one = [&](char const* name, auto const& codec) {
      try_codec(name, codec, read.value, level);
    };
    std::printf("%s: %d ranks, level %d\n  %-32s %6s %6s   error    Gbit/s\n",
                set.name.c_str(),
                ranks,
                level,
                "codec",
                "bits",
                "sent");
    try_one("fp16", p::fp16);
    try_one("gathered groups of 128, 4 bits", gathered_groups<4>{});
    try_one("gathered groups of 128, 6 bits", gathered_groups<6>{});
    try_one("gathered groups of 128, 8 bits", gathered_groups<8>{});
    try_one("two shots of the same, 4 bits", two_shot_groups<4>{});
    try_one("two shots of the same, 6 bits", two_shot_groups<6>{});
    try_one("two shots of the same, 8 bits", two_shot_groups<8>{});
    try_one("blocks_4", p::blocks_4);
    try_one("blocks_8", p::blocks_8);
    try_one("topk_b2", p::topk_b2);
    try_one("allocated_2", p::allocated_2);
    try_one("allocated_4", p::allocated_4);
  }
  return 0;
}
