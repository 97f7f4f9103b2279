// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One rank of the network benchmark: exchanges a gradient with several codecs, whole and in overlapped pieces, and prints
//! the time from gradient to decoded mean.

#pragma once

#include <tersum/baseline/presets.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/tersum.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <network/any_transport.hpp>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tersum::network {

using clock_type = std::chrono::steady_clock;

//! Threads that exchange pieces, each with connections of its own.
inline constexpr std::size_t lanes = 4;

//! COORDINATES STEPS MBIT PIECES [CODEC[,CODEC...]]
struct options {
  std::size_t coordinates;
  int steps;
  double megabits;  //!< Limit of a rank's egress, 0 for none.
  std::size_t pieces;
  std::string only;  //!< Names of codecs besides fp16, or nothing for all.

  static constexpr int least = 4;
  options(int count, char** words)
    : coordinates(std::strtoull(words[0], nullptr, 10)), steps(std::atoi(words[1])),
      megabits(std::atof(words[2])), pieces(std::strtoull(words[3], nullptr, 10)),
      only(count > least ? words[least] : "")
  {
  }
};

//! Payload over frame of a full TCP segment: 1500 bytes of IP less 52 of headers, and 14 of Ethernet.
inline constexpr double goodput = 1448.0 / 1514.0;

class bench {
 public:
  //! @param over  One transport for each lane.
  bench(options o, std::vector<std::unique_ptr<any_transport const>> over)
    : o_(std::move(o)), lanes_(std::move(over)), ranks_(lanes_[0]->size()), rank_(lanes_[0]->rank())
  {
    std::mt19937 random(static_cast<unsigned>(rank_) + 1);
    std::normal_distribution<float> normal;
    std::vector<float> tile(1 << 16);
    for (float& value : tile) { value = normal(random); }
    gradient_.resize(o_.coordinates);
    for (std::size_t i = 0; i < gradient_.size(); ++i) {
      // Chunks of unlike energy, the same ones on every rank.
      float const scale = 1.0f + static_cast<float>((i / 1024 * 2654435761u) % 7);
      gradient_[i]      = tile[i % tile.size()] * scale;
    }
    mean_.resize(o_.coordinates);
    if (rank_ != 0) { return; }
    std::printf("%-18s %7s %10s %10s %10s %8s %8s\n",
                "codec",
                "bits",
                "theory ms",
                "whole ms",
                "pieces ms",
                "x theory",
                "x fp16");
    std::fflush(stdout);
  }

  template <class Codec>
  void run(char const* name, Codec const& codec)
  {
    bool const wanted =
      o_.only.empty() ||
      ("," + o_.only + ",").find(std::string(",") + name + ",") != std::string::npos;
    if (!wanted && std::strcmp(name, "fp16") != 0) { return; }
    double const whole  = median(codec, 1);
    double const pieces = median(codec, o_.pieces);
    double const best   = std::min(whole, pieces);
    if (std::strcmp(name, "fp16") == 0) { fp16_ = best; }
    if (rank_ != 0) { return; }
    shape<Codec> const tensors(o_.coordinates);
    auto const plan = codec.plan(tensors.get(), {.size = ranks_});
    // What is gathered goes whole to every other rank.
    double const share  = gathering<Codec> ? ranks_ - 1.0 : 2.0 * (ranks_ - 1) / ranks_;
    double const theory = o_.megabits > 0 ? share * 8e-3 * static_cast<double>(plan.wire_bytes()) /
                                              (o_.megabits * goodput)
                                          : 0;
    std::printf("%-18s %7.3f %10.1f %10.1f %10.1f %8.2f %8.2f\n",
                name,
                plan.bits_per_coordinate(),
                theory,
                whole,
                pieces,
                theory > 0 ? best / theory : 0.0,
                fp16_ / best);
    std::fflush(stdout);
  }

 private:
  //! One vector; for low-rank codecs a matrix of 1024 columns, and what is left as a vector after it.
  template <class Codec>
  class shape {
   public:
    explicit shape(std::size_t size)
      : size_(size), tensors_{
                       {{"", size / 1024, 1024, 0}, {"", 1, size % 1024, size / 1024 * 1024}}}
    {
    }
    [[nodiscard]] layout get() const
    {
      layout out{.coordinates = size_};
      if constexpr (is_low_rank<Codec> || nesting<Codec>) {
        out.tensors = std::span{tensors_}.first(size_ % 1024 == 0 ? 1 : 2);
      }
      return out;
    }

   private:
    std::size_t size_;
    std::array<tensor, 2> tensors_;
  };

  //! Casts as users have them, in the transport's own all-reduce. What has several rounds waits less in the direct one, which takes
  //! two steps a round rather than 2 (n - 1).
  template <class Codec>
  static constexpr schedule best_schedule()
  {
    if constexpr (!nesting<Codec>) {
      if (tersum::casts<Codec> && !tersum::selects<Codec>) { return schedule::automatic; }
    }
    return schedule::direct;
  }

  template <class Codec>
  struct piece {
    piece(Codec const& codec, std::span<float> part, bench const& b)
      : mean(part), tensors(part.size()),
        plan(codec.plan(tensors.get(), {.size = b.ranks_, .rank = b.rank_})),
        state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1),
        scratch(scratch_bytes(plan) / 16 + 1)
    {
    }

    //! @param computing  Held while this rank computes, not while it waits for the others: pieces then come to the network
    //!                   one after the other, the first of them early, rather than all at once and late.
    [[nodiscard]] status exchange(any_transport const& over, std::mutex& computing)
    {
      cpu_executor const exec;
      auto const reduce = reduce_over<best_schedule<Codec>()>(over, exec, bytes(scratch));
      std::unique_lock turn(computing);
      return all_reduce_mean(
        exec, plan, mean, bytes(state), bytes(workspace), [&](auto const& round) {
          turn.unlock();
          status const outcome = reduce(round);
          turn.lock();
          return outcome;
        });
    }

    static std::span<std::byte> bytes(std::vector<word4>& words)
    {
      return std::as_writable_bytes(std::span{words});
    }

    std::span<float> mean;
    shape<Codec> tensors;
    tersum::plan<Codec> plan;
    std::vector<word4> state, workspace, scratch;
  };

  //! Milliseconds of the slowest rank, the median over the steps, after one that is not counted.
  template <class Codec>
  double median(Codec const& codec, std::size_t count)
  {
    std::vector<piece<Codec>> pieces;
    pieces.reserve(count);  // plans point into them
    for (std::size_t k = 0; k < count; ++k) {
      rank_blocks const cut{.count         = (mean_.size() + 1023) / 1024,
                            .element_bytes = 1,
                            .ranks         = static_cast<int>(count)};
      std::size_t const begin = cut.begin(static_cast<int>(k)) * 1024;
      std::size_t const end   = std::min(mean_.size(), cut.begin(static_cast<int>(k) + 1) * 1024);
      pieces.emplace_back(codec, std::span{mean_}.subspan(begin, end - begin), *this);
      auto& made = pieces.back();
      require(agree_on(*lanes_[0], made.plan, k));
      require(initialize(cpu_executor{}, made.plan, made.bytes(made.state), k));
    }
    std::vector<double> times;
    for (int step = 0; step <= o_.steps; ++step) {
      mean_ = gradient_;
      slowest(0);  // a barrier
      std::mutex computing;
      auto const begin = clock_type::now();
      if (count == 1) {
        require(pieces[0].exchange(*lanes_[0], computing));
      } else {
        std::vector<std::jthread> threads;
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          threads.emplace_back([&, lane] {
            for (std::size_t k = lane; k < count; k += lanes) {
              require(pieces[k].exchange(*lanes_[lane], computing));
            }
          });
        }
      }
      std::chrono::duration<double, std::milli> const took = clock_type::now() - begin;
      double const all                                     = slowest(took.count());
      if (step > 0) { times.push_back(all); }
    }
    std::nth_element(
      times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  }

  //! The largest of the ranks' numbers, on every rank.
  double slowest(double mine) const
  {
    auto passing = static_cast<std::uint64_t>(mine * 1e6);
    auto largest = passing;
    for (int hop = 1; hop < ranks_; ++hop) {
      std::uint64_t received = 0;
      require(lanes_[0]->exchange_word(
        (rank_ + 1) % ranks_, passing, (rank_ + ranks_ - 1) % ranks_, received));
      largest = std::max(largest, received);
      passing = received;
    }
    return static_cast<double>(largest) / 1e6;
  }

  static void require(status const& outcome)
  {
    if (outcome.ok()) { return; }
    std::fprintf(stderr, "%s\n", outcome.message.data());
    std::_Exit(1);
  }

  options o_;
  std::vector<std::unique_ptr<any_transport const>> lanes_;
  int ranks_, rank_;
  std::vector<float> gradient_, mean_;
  double fp16_ = 0;
};

//! Runs the presets that the build chose (TERSUM_BENCH_PRESETS), fp16 first. bench/CMakeLists.txt writes it.
void run_presets(bench& b);

}  // namespace tersum::network
