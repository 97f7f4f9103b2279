// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What Zstandard saves of each codec's wire, on gradients of files: usage: lossless FOLDER RANKS [LEVEL]
//!
//! Each set of files `<set>_worker<k>.npy` is exchanged by ranks that are threads. Bits are what leaves a rank, on average, for each
//! coordinate: by the codec, and after Zstandard. The last column is the speed of a network, in Gbit/s, below which Zstandard
//! saves more time than it takes: bits saved over the time that it adds, the least of several exchanges with and without it.
//!
//! Behind them are entropy-coded gathers, QSGD as its paper codes it (Alistarh et al., NIPS'17), and TopK, in messages that make a
//! rank send the bits of the name; nanoseconds of each coordinate in place of a speed.

#include "compare_codecs/errors.hpp"
#include "compare_codecs/gradient_sets.hpp"

#include <tersum/baseline/baseline.hpp>
#include <tersum/interop/entropy_gather.hpp>
#include <tersum/interop/zstd.hpp>
#include <tersum/single_process/loopback_transport.hpp>
#include <tersum/tersum.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
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

void print_row(char const* name,
               double bits,
               gradients const& in,
               std::vector<double> const& mean,
               double nanoseconds)
{
  std::printf("  %-32s %6.2f %6.2f   %-8.2g %5.1f\n",
              name,
              bits,
              bits,
              compare_codecs::error_of(compare_codecs::average_ranks(in).mean, mean),
              nanoseconds);
}

// Messages that make each rank send so many bits to all others together, as a two shot of as many bits does.
double message_bits(double bits, gradients const& in)
{
  return 2 * bits / static_cast<double>(in.size());
}

void try_entropy_gather(char const* name, gradients const& in, double bits)
{
  gradients means = in;
  std::vector<double> sent(in.size()), passed(in.size(), std::numeric_limits<double>::infinity());
  on_all_ranks(in.size(), [&](std::size_t rank, auto const& over) {
    tersum::entropy_gather const gather{over, message_bits(bits, in)};
    for (int step = 0; step < steps; ++step) {
      means[rank]      = in[rank];
      auto const begin = std::chrono::steady_clock::now();
      if (auto const s = gather.all_reduce_mean(means[rank]); !s.ok()) {
        std::printf("  %-32s %s\n", name, s.message.data());
      }
      std::chrono::duration<double, std::nano> const now = std::chrono::steady_clock::now() - begin;
      passed[rank]                                       = std::min(passed[rank], now.count());
    }
    sent[rank] = 8 * static_cast<double>(gather.bytes_sent()) / steps;
  });
  auto const ranks       = static_cast<double>(in.size());
  auto const coordinates = static_cast<double>(in[0].size());
  double all             = 0;
  for (double const one : sent) { all += one / ranks / coordinates; }
  std::vector<double> const mean(means[0].begin(), means[0].end());
  print_row(name, all, in, mean, *std::max_element(passed.begin(), passed.end()) / coordinates);
}

// Bits of a positive number in Elias' omega code.
int omega_bits(std::uint32_t number)
{
  int bits = 1;
  while (number > 1) {
    auto const length = static_cast<std::uint32_t>(std::bit_width(number));
    bits += static_cast<int>(length);
    number = length - 1;
  }
  return bits;
}

// QSGD: magnitudes over the norm of their bucket, times the levels, are rounded at random; the norm as a float, then for each code
// that is not zero how far it is from the last one, its sign and its magnitude. Adds the values to sums; returns the bits.
double add_qsgd(std::vector<float> const& gradient,
                std::size_t bucket,
                double levels,
                std::vector<double>& sums)
{
  std::mt19937 random(42);
  std::uniform_real_distribution<double> uniform;
  double bits = 0;
  for (std::size_t begin = 0; begin < gradient.size(); begin += bucket) {
    std::size_t const end = std::min(gradient.size(), begin + bucket);
    double norm           = 0;
    for (std::size_t i = begin; i < end; ++i) { norm += std::pow(gradient[i], 2.); }
    norm = std::sqrt(norm);
    bits += 32;
    std::size_t from = begin;
    for (std::size_t i = begin; i < end && norm > 0; ++i) {
      double const code = std::floor(std::fabs(gradient[i]) / norm * levels + uniform(random));
      if (code == 0) { continue; }
      sums[i] += std::copysign(code, gradient[i]) * norm / levels;
      bits += omega_bits(static_cast<std::uint32_t>(i - from + 1)) + 1 +
              omega_bits(static_cast<std::uint32_t>(code));
      from = i + 1;
    }
  }
  return bits;
}

// With the number of levels that makes messages as long as they may be.
void try_qsgd(char const* name, gradients const& in, std::size_t bucket, double bits)
{
  auto const ranks       = static_cast<double>(in.size());
  auto const coordinates = static_cast<double>(in[0].size());
  double few = 1e-3, many = 1e9, sent = 0;
  std::vector<double> mean(in[0].size());
  while (many / few > 1.01) {
    double const levels = std::sqrt(few * many);
    std::vector<double> sums(in[0].size());
    double all = 0;
    for (auto const& gradient : in) { all += add_qsgd(gradient, bucket, levels, sums); }
    bool const fits     = all <= message_bits(bits, in) * ranks * coordinates;
    (fits ? few : many) = levels;
    if (!fits) { continue; }
    for (double& sum : sums) { sum /= ranks; }
    mean = sums;
    sent = all / coordinates / ranks * (ranks - 1);
  }
  print_row(name, sent, in, mean, 0);
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
    for (double const bits : {1., 2.}) {
      std::printf("  at %.0f bits:\n", bits);
      auto const budget = static_cast<float>(bits);
      try_one("entropy_codec", tersum::entropy_codec<>{.bits = budget});
      try_one("entropy_two_shot_codec", tersum::entropy_two_shot_codec<>{.bits = budget});
      try_entropy_gather("entropy_gather", read.value, bits);
      try_qsgd("QSGD in buckets of 512", read.value, 512, bits);
      try_qsgd("QSGD in one bucket", read.value, read.value[0].size(), bits);
    }
  }
  return 0;
}
