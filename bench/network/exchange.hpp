// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One rank of the network benchmark: exchanges a gradient with several codecs, whole and in overlapped pieces, and prints
//! the time from gradient to decoded mean, or what the performance model predicts beside it.

#pragma once

#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/probe_network.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/model/exchange.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/presets.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <network/any_transport.hpp>
#include <network/prediction.hpp>
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

//! COORDINATES STEPS MBIT PIECES [CODEC[,CODEC...] [CORES [COPY_RATE]]]
//!
//! With CORES, those that all ranks share, the model predicts each exchange. COORDINATES may then be several numbers with commas
//! between, and a line of JSON is printed for each exchange; COPY_RATE is what an earlier run without limit printed.
struct options {
  std::vector<std::size_t> sizes;
  std::size_t coordinates;  //!< The largest of them.
  int steps;
  double megabits;  //!< Limit of a rank's egress, 0 for none.
  std::size_t pieces;
  std::string only;  //!< Names of codecs besides fp16, or nothing for all.
  int cores;         //!< 0: no predictions.
  double copy_rate;  //!< Bytes per second that a core carries through the transport, 0 if unknown.

  static constexpr int least = 4;
  options(int count, char** words)
    : sizes(numbers(words[0])), coordinates(*std::max_element(sizes.begin(), sizes.end())),
      steps(std::atoi(words[1])), megabits(std::atof(words[2])),
      pieces(std::strtoull(words[3], nullptr, 10)), only(count > least ? words[least] : ""),
      cores(count > least + 1 ? std::atoi(words[least + 1]) : 0),
      copy_rate(count > least + 2 ? std::atof(words[least + 2]) : 0)
  {
  }

  static std::vector<std::size_t> numbers(char const* text)
  {
    std::vector<std::size_t> out;
    for (char* end = nullptr;; text = end + 1) {
      out.push_back(std::strtoull(text, &end, 10));
      if (*end != ',') { return out; }
    }
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
    if (o_.cores > 0) { probe_network(); }
    if (rank_ != 0 || o_.cores > 0) { return; }
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
    if (o_.cores > 0) {
      if constexpr (!ending_in_shards<Codec>) {  // the model has no reduce-scatters
        for (std::size_t const size : o_.sizes) {
          mean_.resize(size);
          predict(name, codec, 1);
          if (o_.pieces > 1) { predict(name, codec, o_.pieces); }
        }
      }
      return;
    }
    auto const time = [&](std::size_t count) {
      auto cuts = cut(codec, count);
      return median(cuts);
    };
    double const whole  = time(1);
    double const pieces = time(o_.pieces);
    double const best   = std::min(whole, pieces);
    if (std::strcmp(name, "fp16") == 0) { fp16_ = best; }
    if (rank_ != 0) { return; }
    shape<Codec> const tensors(o_.coordinates);
    auto const plan = codec.plan(tensors.get(), {.size = ranks_, .rank = 0});
    // What is gathered goes whole to every other rank; shards travel one way.
    double const share  = gathering<Codec>
                            ? ranks_ - 1.0
                            : (ending_in_shards<Codec> ? 1.0 : 2.0) * (ranks_ - 1) / ranks_;
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
      if constexpr (is_low_rank<Codec>) {
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
    if (tersum::casts<Codec> && !tersum::selects<Codec>) { return schedule::automatic; }
    return schedule::direct;
  }

  template <class Codec>
  struct piece {
    //! @param ends  Of a codec of shards: where the ranks' shards of this piece begin, and the last one ends.
    piece(Codec const& codec,
          std::span<float> part,
          bench const& b,
          std::vector<std::uint64_t> ends = {})
      : mean(part), tensors(part.size()), boundaries(std::move(ends)),
        plan(plan_of(codec, {.size = b.ranks_, .rank = b.rank_})),
        state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1),
        scratch(scratch_bytes(plan) / 16 + 1)
    {
    }

    tersum::plan<Codec> plan_of(Codec const& codec, world const& ranks) const
    {
      if constexpr (ending_in_shards<Codec>) {
        return codec.plan(tensors.get(), ranks, boundaries);
      } else {
        return codec.plan(tensors.get(), ranks);
      }
    }

    //! @param computing  Held while this rank computes, not while it waits for the others: pieces then come to the network
    //!                   one after the other, the first of them early, rather than all at once and late.
    [[nodiscard]] status exchange(any_transport const& over, std::mutex& computing)
    {
      cpu_executor const exec;
      auto const reduce = reduce_over<best_schedule<Codec>()>(over, exec, bytes(scratch));
      std::unique_lock turn(computing);
      auto const in_turns = [&](auto const& round) {
        turn.unlock();
        status const outcome = reduce(round);
        turn.lock();
        return outcome;
      };
      if constexpr (ending_in_shards<Codec>) {
        shard.resize(plan.shard_size());
        return reduce_scatter_mean(
          exec, plan, mean, shard, bytes(state), bytes(workspace), in_turns);
      } else {
        return all_reduce_mean(exec, plan, mean, bytes(state), bytes(workspace), in_turns);
      }
    }

    static std::span<std::byte> bytes(std::vector<word4>& words)
    {
      return std::as_writable_bytes(std::span{words});
    }

    std::span<float> mean;
    std::vector<float> shard;
    shape<Codec> tensors;
    std::vector<std::uint64_t> boundaries;
    tersum::plan<Codec> plan;
    std::vector<word4> state, workspace, scratch;
  };

  //! The gradient cut into pieces, whose plans all ranks have agreed on.
  template <class Codec>
  std::vector<piece<Codec>> cut(Codec const& codec, std::size_t count)
  {
    std::vector<piece<Codec>> pieces;
    auto const ranks = static_cast<std::size_t>(ranks_);
    pieces.reserve(count * ranks);  // plans point into them
    auto const add = [&](std::size_t begin, std::size_t end, std::vector<std::uint64_t> ends) {
      std::size_t const k = pieces.size();
      pieces.emplace_back(
        codec, std::span{mean_}.subspan(begin, end - begin), *this, std::move(ends));
      auto& made = pieces.back();
      require(agree_on(*lanes_[0], made.plan, k));
      require(initialize(cpu_executor{}, made.plan, made.bytes(made.state), k));
    };
    if (!ending_in_shards<Codec> || count == 1) {
      for (std::size_t k = 0; k < count; ++k) {
        add(cut_of(mean_.size(), k, count), cut_of(mean_.size(), k + 1, count), {});
      }
      return pieces;
    }
    // Shards stay whole: a piece is a slice of one rank's. The ranks' shards take turns, so that all of them are busy.
    rank_blocks const shards{.count = mean_.size(), .element_bytes = 1, .ranks = ranks_};
    for (std::size_t k = 0; k < count; ++k) {
      for (int owner = 0; owner < ranks_; ++owner) {
        std::size_t const first = shards.begin(owner);
        std::size_t const begin = cut_of(shards.size(owner), k, count);
        std::size_t const end   = cut_of(shards.size(owner), k + 1, count);
        std::vector<std::uint64_t> ends(ranks + 1, end - begin);
        std::fill_n(ends.begin(), owner + 1, 0);
        add(first + begin, first + end, std::move(ends));
      }
    }
    return pieces;
  }

  //! Where piece k of `count` begins, which is where a chunk of 1024 does.
  static std::size_t cut_of(std::size_t size, std::size_t k, std::size_t count)
  {
    rank_blocks const blocks{
      .count = (size + 1023) / 1024, .element_bytes = 1, .ranks = static_cast<int>(count)};
    return std::min(size, blocks.begin(static_cast<int>(k)) * 1024);
  }

  //! Milliseconds of the slowest rank, the median over the steps, after one that is not counted.
  template <class Codec>
  double median(std::vector<piece<Codec>>& pieces)
  {
    std::vector<double> times;
    double spent = 0;
    // With predictions, short exchanges more often: up to 41 of them, while they last no longer than .3 s.
    for (int step = 0; step <= o_.steps || (o_.cores > 0 && step <= 41 && spent < 300); ++step) {
      std::copy_n(gradient_.begin(), mean_.size(), mean_.begin());
      std::mutex computing;
      double const took = in_lanes(pieces.size(), [&](std::size_t lane, std::size_t k) {
        return pieces[k].exchange(*lanes_[lane], computing);
      });
      if (step > 0) {
        times.push_back(took);
        spent += took;
      }
    }
    return middle_of(times);
  }

  static double middle_of(std::vector<double>& times)
  {
    auto const middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

  //! Milliseconds of the slowest rank for so many pieces, from when all ranks and their threads are ready.
  //! @param work  status(std::size_t lane, std::size_t piece).
  template <class Work>
  double in_lanes(std::size_t count, Work const& work) const
  {
    using milliseconds = std::chrono::duration<double, std::milli>;
    rest();
    if (count == 1) {
      slowest(0);  // a barrier
      auto const begin = clock_type::now();
      require(work(0, 0));
      return slowest(milliseconds(clock_type::now() - begin).count());
    }
    std::latch ready(lanes), go(1), done(lanes);
    std::vector<std::jthread> threads;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      threads.emplace_back([&, lane] {
        ready.count_down();
        go.wait();
        for (std::size_t k = lane; k < count; k += lanes) { require(work(lane, k)); }
        done.count_down();
      });
    }
    ready.wait();
    slowest(0);
    auto const begin = clock_type::now();
    go.count_down();
    done.wait();
    return slowest(milliseconds(clock_type::now() - begin).count());
  }

  //! @name Prediction
  //! @{

  //! Latency and bandwidth of the transport's own all-reduce of halves, and of a direct exchange; without limit also how
  //! many bytes a core carries.
  void probe_network()
  {
    constexpr std::size_t most = std::size_t{1} << 26;  // more than caches hold
    std::vector<std::byte> scratch(2 * most);
    require(tersum::probe_network(*lanes_[0], scratch, direct_));
    std::vector<half> halves(most / sizeof(half));
    require(detail::probe_collective(
      *lanes_[0],
      most,
      model::all_reduce_traffic(model::route::ring, 1, ranks_),
      model::all_reduce_messages(model::route::ring, ranks_),
      std::span{scratch}.first(1 << 24),
      [&](std::size_t bytes) {
        return lanes_[0]->all_reduce({.data  = halves.data(),
                                      .count = bytes / sizeof(half),
                                      .op    = native_sum<half>{},
                                      .ranks = ranks_});
      },
      ring_));
    // Each rank stays on a core, which so many of them have; without a limit the cores are the limit.
    int const sharing    = (ranks_ + o_.cores - 1) / o_.cores;
    double const carried = direct_.bandwidth * sharing;
    on_                  = {.ranks = sharing, .cores = 1};
    if (o_.copy_rate > 0) { on_.copy_rate = o_.copy_rate; }
    if (rank_ != 0) { return; }
    std::printf(
      "{\"ranks\":%d,\"megabits\":%g,\"copy_rate\":%.4g,\"ring\":[%.4g,%.4g,%.4g,%.4g],\"direct\":[%.4g,%.4g,%.4g,%.4g]}\n",
      ranks_,
      o_.megabits,
      o_.megabits > 0 ? o_.copy_rate : carried,
      ring_.latency,
      ring_.bandwidth,
      ring_.burst,
      std::min(ring_.burst_rate, 1e15),
      direct_.latency,
      direct_.bandwidth,
      direct_.burst,
      std::min(direct_.burst_rate, 1e15));
    std::fflush(stdout);
  }

  //! What messages cost a piece while others are under way: seconds of the piece, and of each message.
  struct piece_costs {
    double piece   = 0;
    double message = 0;
  };

  //! From pieces of one and of two all-reduces of 512 bytes. Measured before every exchange in pieces, as it does not stay the same.
  piece_costs time_messages(model::route way)
  {
    constexpr std::size_t bytes = 512;
    std::vector<std::array<half, 2 * bytes>> data(lanes);  // sent, and received
    std::mutex computing;  // which nobody does, but all take turns, as in an exchange
    auto const once = [&](std::size_t lane) -> status {
      {
        std::lock_guard const turn(computing);
      }
      auto& own = data[lane];
      if (way == model::route::ring) {
        return lanes_[lane]->all_reduce({.data  = own.data(),
                                         .count = bytes / sizeof(half),
                                         .op    = native_sum<half>{},
                                         .ranks = ranks_});
      }
      auto* const sent = reinterpret_cast<std::byte*>(own.data());
      rank_blocks const blocks{bytes, 1, ranks_};
      status const s = lanes_[lane]->all_to_all(sent, blocks, sent + bytes);
      return s.ok() ? lanes_[lane]->all_gather(sent, blocks) : s;
    };
    std::array<std::vector<double>, 2> times;
    for (int turn = 0; turn < 22; ++turn) {
      for (std::size_t more = 0; more < 2; ++more) {
        double const took = in_lanes(o_.pieces, [&](std::size_t lane, std::size_t) {
          status const s = once(lane);
          return s.ok() && more > 0 ? once(lane) : s;
        });
        if (turn > 0) { times[more].push_back(took / 1e3 / static_cast<double>(o_.pieces)); }
      }
    }
    double const one = middle_of(times[0]);
    double const two = std::clamp(middle_of(times[1]), one, 2 * one);
    return {2 * one - two, (two - one) / model::all_reduce_messages(way, ranks_)};
  }

  //! Processor seconds for each coordinate, of the rank that is slowest each time: the median of several codings, while all ranks
  //! compute. They wait for each other where an exchange does, because who has waited computes with colder caches.
  template <class Codec>
  model::coding measure_coding(std::vector<piece<Codec>>& pieces)
  {
    std::vector<model::coding> turns;
    double spent = 0;
    for (int turn = 0; turn < 10 && (turn < 4 || spent < .3); ++turn) {
      std::copy_n(gradient_.begin(), mean_.size(), mean_.begin());
      rest();
      slowest(0);
      model::coding all;
      for (auto& one : pieces) {
        status outcome;
        auto const parts = coding_of_one(
          one.plan,
          one.mean,
          one.bytes(one.state),
          one.bytes(one.workspace),
          [&] {
            rest();
            slowest(0);
            return status{};
          },
          outcome);
        require(outcome);
        all.encode += parts.encode;
        all.reduce += parts.reduce;
        all.decode += parts.decode;
      }
      spent += slowest(all.encode + all.reduce + all.decode);
      if (turn > 0) { turns.push_back(all); }  // the first touches memory
    }
    auto const each = [&](double model::coding::*part) {
      std::vector<double> times;
      for (auto const& turn : turns) { times.push_back(slowest(1e3 * turn.*part)); }
      return middle_of(times) / 1e3 / static_cast<double>(mean_.size());
    };
    model::coding costs{
      each(&model::coding::encode), each(&model::coding::reduce), each(&model::coding::decode)};
    if (gathering<Codec>) { costs.decode /= ranks_; }
    return costs;
  }

  template <class Codec>
  requires(!ending_in_shards<Codec>) void predict(char const* name,
                                                  Codec const& codec,
                                                  std::size_t count)
  {
    constexpr bool in_wire = best_schedule<Codec>() == schedule::automatic;
    auto pieces            = cut(codec, count);
    auto costs             = measure_coding(pieces);
    if (in_wire) { costs.reduce = 0; }  // the probe of the transport's own all-reduce has it
    shape<Codec> const tensors(mean_.size());
    auto const sent      = model::volume_of(codec.plan(tensors.get(), {.size = ranks_, .rank = 0}));
    auto const way       = in_wire ? model::route::ring : model::route::direct;
    auto const& net      = in_wire ? ring_ : direct_;
    auto const parts     = model::exchange_parts(sent, costs, net, on_, way, ranks_);
    double const traffic = model::exchange_traffic(sent, way, ranks_);
    int const messages   = model::exchange_messages(sent, way, ranks_);
    double const waits   = messages * net.latency;
    auto const cost      = count > 1 ? time_messages(way) : piece_costs{};
    double const beside  = cost.piece + messages * cost.message;
    double const predicted =
      count == 1 ? parts.whole()
                 : exchange_seconds_in_pieces(
                     parts, sent.coordinates, beside, traffic, on_, static_cast<int>(count));
    double const fixed = parts.coding() + waits;
    if (std::strcmp(name, "fp16") == 0) { reference_[{mean_.size(), count}] = {fixed, traffic}; }
    auto const& fp16  = reference_[{mean_.size(), count}];
    double const even = model::break_even_bandwidth(fp16[0], fp16[1], fixed, traffic);
    double const took = median(pieces) / 1e3;
    if (rank_ != 0) { return; }
    std::printf(
      "{\"codec\":\"%s\",\"ranks\":%d,\"megabits\":%g,\"coordinates\":%zu,\"pieces\":%zu,"
      "\"bytes\":%.0f,\"sent\":%.0f,\"encode\":%.4g,\"network\":%.4g,\"waits\":%.4g,\"reduce\":%.4g,"
      "\"decode\":%.4g,\"messages\":%.4g,\"bandwidth\":%.4g,\"break_even\":%.4g,\"predicted\":%.5g,\"measured\":%.5g}\n",
      name,
      ranks_,
      o_.megabits,
      mean_.size(),
      count,
      sent.bytes(),
      traffic,
      parts.encode,
      parts.network,
      waits,
      parts.reduce,
      parts.decode,
      beside,
      net.bandwidth,
      std::min(even, 1e15),
      predicted,
      took);
    std::fflush(stdout);
  }
  //! @}

  //! As probe_network does: afterwards a token bucket is full, and caches are what they are for one who has waited.
  static void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

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
  model::network ring_, direct_;
  model::host on_;
  //! Of fp16, by size and pieces: seconds that no bandwidth changes, and bytes.
  std::map<std::pair<std::size_t, std::size_t>, std::array<double, 2>> reference_;
};

//! Runs the presets that the build chose (TERSUM_BENCH_PRESETS), fp16 first. bench/CMakeLists.txt writes it.
void run_presets(bench& b);

}  // namespace tersum::network
