// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What codecs lose between hosts, on gradients of files: usage: two_levels FOLDER RANKS_PER_HOST
//!
//! Each set of files `<set>_worker<k>.npy` is exchanged once: rank k is number k % RANKS_PER_HOST of host k / RANKS_PER_HOST. Bits
//! are what all ranks of a host send to other hosts, for each coordinate of the gradient.

#include "compare_codecs/gradient_sets.hpp"
#include "recipe.hpp"

#include <tersum/presets.hpp>
#include <tersum/sharded_presets.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/tersum.hpp>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace {

using gradients = std::vector<std::vector<float>>;

double error_of(gradients const& in, std::span<float const> estimate)
{
  double lost = 0, energy = 0;
  for (std::size_t i = 0; i < estimate.size(); ++i) {
    double mean = 0;
    for (auto const& gradient : in) {
      mean += static_cast<double>(gradient[i]) / static_cast<double>(in.size());
    }
    lost += (mean - static_cast<double>(estimate[i])) * (mean - static_cast<double>(estimate[i]));
    energy += mean * mean;
  }
  return lost / energy;
}

void print(char const* name, double bits, double error)
{
  std::printf("  %-34s %6.2f   %.3g\n", name, bits, error);
}

template <class Codec>
void try_codec(char const* name, Codec const& codec, gradients in, int per_host)
{
  tersum::cpu_executor const exec{};
  gradients const given = in;
  std::deque<std::vector<tersum::word4>> memory;
  auto const bytes = [&](std::size_t size) {
    memory.emplace_back(size / sizeof(tersum::word4) + 1);
    return std::as_writable_bytes(std::span{memory.back()});
  };
  int const world = static_cast<int>(in.size());
  std::vector<tersum::loopback_rank<Codec, float>> ranks;
  for (int rank = 0; rank < world; ++rank) {
    auto const plan  = codec.plan({in[0].size()}, {.size = world, .rank = rank}, per_host);
    auto const state = bytes(plan.state_bytes());
    auto outcome     = plan.check();
    if (outcome.ok()) { outcome = initialize(exec, plan, state, 42); }
    if (!outcome.ok()) {
      std::printf("  %s: %s\n", name, outcome.message.data());
      return;
    }
    ranks.push_back(
      {plan, in[static_cast<std::size_t>(rank)], state, bytes(plan.workspace_bytes())});
  }
  std::span<tersum::loopback_rank<Codec, float> const> const all{ranks};
  if (auto const s = loopback_all_reduce_mean(exec, all, tersum::reduction_order::direct);
      !s.ok()) {
    std::printf("  %s: %s\n", name, s.message.data());
    return;
  }
  // Two shots, and an all-reduce, send each payload twice, but for the own part.
  int const hosts = world / per_host;
  double sent     = 0;
  for (int number = 0; number < per_host; ++number) {
    sent += 8 * static_cast<double>(ranks[static_cast<std::size_t>(number)].plan.wire_bytes());
  }
  print(name,
        2 * sent * (hosts - 1) / hosts / static_cast<double>(in[0].size()),
        error_of(given, in[0]));
}

}  // namespace

int main(int argc, char** argv)
{
  int const per_host = argc == 3 ? std::atoi(argv[2]) : 0;
  if (per_host < 1) {
    std::fprintf(stderr, "usage: two_levels FOLDER RANKS_PER_HOST\n");
    return 2;
  }
  auto const sets = compare_codecs::list_gradient_sets(argv[1], std::nullopt);
  if (!sets) {
    std::fprintf(stderr, "two_levels: %s\n", sets.error.c_str());
    return 2;
  }
  namespace p = tersum::presets;
  for (auto const& set : sets.value) {
    auto const read = compare_codecs::read_gradient_set(set);
    if (!read) {
      std::fprintf(stderr, "two_levels: %s\n", read.error.c_str());
      return 2;
    }
    gradients const& in = read.value;
    std::printf("%s: %zu ranks, %d on each host\n  %-34s %6s   error\n",
                set.name.c_str(),
                in.size(),
                per_host,
                "between hosts",
                "bits");
    try_codec("fp16", tersum::two_level_codec{p::fp16}, in, per_host);
    try_codec("two_shot_4", tersum::two_level_codec{p::two_shot_4}, in, per_host);
    try_codec("two_shot_4, 8 bits within",
              tersum::two_level_codec<p::two_shot<4>, p::sharded<8>, p::values<8>>{},
              in,
              per_host);
    try_codec("allocated_4", tersum::two_level_codec{p::allocated_4}, in, per_host);
    try_codec("allocated_2", tersum::two_level_codec{p::allocated_2}, in, per_host);
    auto const hosts  = static_cast<double>(in.size()) / per_host;
    double const once = sdp4bit::recipe_bits * (hosts - 1) / hosts;
    print("SDP4Bit's recipe, 4 bits both ways",
          2 * once,
          error_of(in, sdp4bit::recipe_mean(in, per_host, true)));
    print("the same, up only", once, error_of(in, sdp4bit::recipe_mean(in, per_host, false)));
  }
  return 0;
}
