// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One rank of the network benchmark: exchanges a gradient over Gloo with several codecs, whole and in overlapped
//! pieces, and prints the time from gradient to decoded mean. Started by run.sh in a network namespace.

#include <tersum/interop/gloo.hpp>
#include <tersum/tersum.hpp>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tersum;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t lanes =
  2;  //!< Threads that exchange pieces, each with connections of its own.

struct options {
  int rank;
  int ranks;
  std::string folder;
  std::string address;
  std::size_t coordinates;
  int steps;
  double megabits;  //!< Limit of a rank's egress, 0 for none.
  std::size_t pieces;
  std::string only;  //!< Name of one codec besides fp16, or nothing for all.
};

//! Payload over frame of a full TCP segment: 1500 bytes of IP less 52 of headers, and 14 of Ethernet.
constexpr double goodput = 1448.0 / 1514.0;

class bench {
 public:
  explicit bench(options const& o) : o_(o)
  {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = o.address;
    auto device         = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore files(o.folder);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      gloo::rendezvous::PrefixStore store(std::to_string(lane), files);
      auto context = std::make_shared<gloo::rendezvous::Context>(o.rank, o.ranks);
      context->connectFullMesh(store, device);
      lanes_.emplace_back(context, std::chrono::seconds(120));
    }
    std::mt19937 random(static_cast<unsigned>(o.rank) + 1);
    std::normal_distribution<float> normal;
    std::vector<float> tile(1 << 16);
    for (float& value : tile) { value = normal(random); }
    gradient_.resize(o.coordinates);
    for (std::size_t i = 0; i < gradient_.size(); ++i) {
      // Chunks of unlike energy, the same ones on every rank.
      float const scale = 1.0f + static_cast<float>((i / 1024 * 2654435761u) % 7);
      gradient_[i]      = tile[i % tile.size()] * scale;
    }
    mean_.resize(o.coordinates);
  }

  template <class Codec>
  void run(char const* name, Codec const& codec)
  {
    if (!o_.only.empty() && o_.only != name && std::strcmp(name, "fp16") != 0) { return; }
    double const whole  = median(codec, 1);
    double const pieces = median(codec, o_.pieces);
    double const best   = std::min(whole, pieces);
    if (std::strcmp(name, "fp16") == 0) { fp16_ = best; }
    if (o_.rank != 0) { return; }
    auto const plan     = codec.plan({.coordinates = o_.coordinates}, {.size = o_.ranks});
    double const share  = 2.0 * (o_.ranks - 1) / o_.ranks;
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
  //! One vector; for low-rank codecs a matrix of 1024 columns, and what is left as a vector beside it.
  template <class Codec>
  class shape {
   public:
    shape(Codec const&, std::size_t size)
      : size_(size), tensors_{
                       {{"", size / 1024, 1024, 0}, {"", 1, size % 1024, size / 1024 * 1024}}}
    {
    }
    [[nodiscard]] layout get() const
    {
      layout out{.coordinates = size_};
      if constexpr (is_low_rank<Codec>) { out.tensors = tensors_; }
      return out;
    }

   private:
    std::size_t size_;
    std::array<tensor, 2> tensors_;
  };

  template <class Codec>
  struct piece {
    piece(Codec const& codec, std::span<float> part, bench const& b)
      : mean(part), tensors(codec, part.size()),
        plan(codec.plan(tensors.get(), {.size = b.o_.ranks, .rank = b.o_.rank})),
        state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1),
        scratch(scratch_bytes(plan) / 16 + 1)
    {
    }

    [[nodiscard]] status exchange(gloo_transport const& over)
    {
      cpu_executor const exec;
      return all_reduce_mean(
        exec, plan, mean, bytes(state), bytes(workspace), reduce_over(over, exec, bytes(scratch)));
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
      require(agree_on(lanes_[0], made.plan, k));
      require(initialize(cpu_executor{}, made.plan, made.bytes(made.state), k));
    }
    std::vector<double> times;
    for (int step = 0; step <= o_.steps; ++step) {
      mean_ = gradient_;
      slowest(0);  // a barrier
      auto const begin = clock_type::now();
      if (count == 1) {
        require(pieces[0].exchange(lanes_[0]));
      } else {
        std::vector<std::jthread> threads;
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          threads.emplace_back([&, lane] {
            for (std::size_t k = lane; k < count; k += lanes) {
              require(pieces[k].exchange(lanes_[lane]));
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
    for (int hop = 1; hop < o_.ranks; ++hop) {
      std::uint64_t received = 0;
      require(lanes_[0].exchange_word(
        (o_.rank + 1) % o_.ranks, passing, (o_.rank + o_.ranks - 1) % o_.ranks, received));
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
  std::vector<gloo_transport> lanes_;
  std::vector<float> gradient_, mean_;
  double fp16_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
  if (argc < 9) {
    std::fprintf(stderr,
                 "usage: RANK RANKS FOLDER ADDRESS COORDINATES STEPS MBIT PIECES [CODEC]\n");
    return 2;
  }
  options const o{.rank        = std::atoi(argv[1]),
                  .ranks       = std::atoi(argv[2]),
                  .folder      = argv[3],
                  .address     = argv[4],
                  .coordinates = std::strtoull(argv[5], nullptr, 10),
                  .steps       = std::atoi(argv[6]),
                  .megabits    = std::atof(argv[7]),
                  .pieces      = std::strtoull(argv[8], nullptr, 10),
                  .only        = argc > 9 ? argv[9] : ""};
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to the sockets of ranks that are dead
  try {
    bench b(o);
    if (o.rank == 0) {
      std::printf("%-18s %7s %10s %10s %10s %8s %8s\n",
                  "codec",
                  "bits",
                  "theory ms",
                  "whole ms",
                  "pieces ms",
                  "x theory",
                  "x fp16");
    }
    b.run("fp16", presets::fp16);
    b.run("fp32", presets::fp32);
    b.run("thc_wide4_partial", presets::thc_wide4_partial);
    b.run("rotated_sat8", presets::rotated_sat8);
    b.run("rotated_sat4", presets::rotated_sat4);
    b.run("rotated_sat2", presets::rotated_sat2);
    b.run("topkc_b2", presets::topkc_b2);
    b.run("allocated_sat_4", presets::allocated_sat_4);
    b.run("allocated_sat_2", presets::allocated_sat_2);
    b.run("two_shot_4", presets::two_shot_4);
    b.run("allocated_4", presets::allocated_4);
    b.run("allocated_2", presets::allocated_2);
    b.run("powersgd_r4", presets::powersgd_r4);
  } catch (std::exception const& error) {  // Gloo throws while it connects
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
