// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges whose bytes are digested, on any executor: what all ranks give to all rounds, what they end with, and their states.
//! The files tests/golden/*.txt hold the digests.

#pragma once

#include "count_allocations.hpp"
#include "fnv_digest.hpp"
#include "host_buffer.hpp"

#include <tersum/codec_kinds.hpp>
#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/single_process/loopback_transport.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace tersum::tests {

//! @brief Memory of the host. A device has a type of its own with these members.
struct host_memory {
  using buffer = host_buffer;

  //! Calls visit(bytes) when all work that was enqueued on the bytes is done.
  template <class Visit>
  static void read(std::span<std::byte const> bytes, Visit const& visit)
  {
    visit(bytes);
  }
};

//! @brief The collective of one rank, which is a thread: it digests what the rank gives to a round, and exchanges it. A
//! hostile one gives the rank something else.
template <class Executor, class Memory>
class digesting_collective {
 public:
  digesting_collective(Executor const& exec, loopback_group& group, int rank, bool hostile)
    : exec_(exec), group_(group), rank_(rank), hostile_(hostile)
  {
  }

  template <reduce_op Op>
  [[nodiscard]] status operator()(wire<Op> const& round)
  {
    disturb_if_hostile(std::span{round.data, round.count});
    add(round.data, round.count);
    status const reduced = together(round, [&](std::vector<wire<Op>> const& all) {
      return loopback_all_reduce(
        exec_, std::span<wire<Op> const>{all}, tersum::reduction_order::ring);
    });
    disturb_if_hostile(std::span{round.data, round.count});
    return reduced;
  }

  template <class T>
  [[nodiscard]] status operator()(gather_wire<T> const& round)
  {
    std::size_t const own = static_cast<std::size_t>(rank_) * round.count;
    add(round.gathered + own, round.count);
    status const gathered = together(round, [&](std::vector<gather_wire<T>> const& all) {
      return each_pair([&](std::size_t from, std::size_t to) {
        std::size_t const at = from * round.count;
        return from == to ? status{}
                          : copy(all[to].gathered + at, all[from].gathered + at, round.count);
      });
    });
    disturb_if_hostile(
      std::span{round.gathered, static_cast<std::size_t>(group_.ranks()) * round.count});
    return gathered;
  }

  template <class T>
  [[nodiscard]] status operator()(scatter_wire<T> const& round)
  {
    std::size_t const ranks = static_cast<std::size_t>(round.ranks);
    add(round.sent, ranks * round.count);
    status const scattered = together(round, [&](std::vector<scatter_wire<T>> const& all) {
      return each_pair([&](std::size_t from, std::size_t to) {
        return copy(
          all[to].received + from * round.count, all[from].sent + to * round.count, round.count);
      });
    });
    disturb_if_hostile(std::span{round.received, ranks * round.count});
    return scattered;
  }

  template <class T, class Parts>
  [[nodiscard]] status operator()(shards_wire_of<T, Parts> const& round)
  {
    for (int part = 0; part < round.ranks; ++part) {
      add(round.sent + round.begin(part), round.size(part));
    }
    using wire_type        = shards_wire_of<T, Parts>;
    status const scattered = together(round, [&](std::vector<wire_type> const& all) {
      return each_pair([&](std::size_t from, std::size_t to) {
        std::size_t const size = round.size(static_cast<int>(to));
        return copy(
          all[to].received + from * size, all[from].sent + round.begin(static_cast<int>(to)), size);
      });
    });
    disturb_if_hostile(
      std::span{round.received, static_cast<std::size_t>(round.ranks) * round.size(rank_)});
    return scattered;
  }

  template <reduce_op Op, class Parts>
  [[nodiscard]] status operator()(summed_wire_of<Op, Parts> const& round)
  {
    for (int part = 0; part < round.ranks; ++part) {
      add(round.data + round.begin(part), round.size(part));
    }
    using wire_type      = summed_wire_of<Op, Parts>;
    status const reduced = together(round, [&](std::vector<wire_type> const& all) {
      return each_pair([&](std::size_t from, std::size_t to) {
        std::size_t const size = round.size(static_cast<int>(to));
        auto const* const part = all[from].data + round.begin(static_cast<int>(to));
        if (from == 0 || size == 0) { return copy(all[to].sum, part, size); }
        return exec_.reduce(Op{}, all[to].sum, all[to].sum, part, size);
      });
    });
    disturb_if_hostile(std::span{round.sum, round.size(rank_)});
    return reduced;
  }

  template <class T, class Parts>
  [[nodiscard]] status operator()(gather_wire_of<T, Parts> const& round)
  {
    add(round.gathered + round.begin(rank_), round.size(rank_));
    using wire_type       = gather_wire_of<T, Parts>;
    status const gathered = together(round, [&](std::vector<wire_type> const& all) {
      return each_pair([&](std::size_t from, std::size_t to) {
        std::size_t const at = round.begin(static_cast<int>(from));
        return from == to ? status{}
                          : copy(all[to].gathered + at,
                                 all[from].gathered + at,
                                 round.size(static_cast<int>(from)));
      });
    });
    for (int part = 0; part < round.ranks; ++part) {
      disturb_if_hostile(std::span{round.gathered + round.begin(part), round.size(part)});
    }
    return gathered;
  }

  [[nodiscard]] fnv_digest const& sent() const { return sent_; }

 private:
  template <class T>
  void add(T const* data, std::size_t count)
  {
    Memory::read(std::as_bytes(std::span{data, count}),
                 [&](std::span<std::byte const> bytes) { sent_.add(bytes); });
  }

  template <class T>
  void disturb_if_hostile(std::span<T> sent)
  {
    if constexpr (std::same_as<Memory, host_memory>) {
      if (hostile_) { disturb(std::as_writable_bytes(sent), rank_ + rounds_++); }
    }
  }

  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    return count == 0 ? status{} : exec_.copy(to, from, count);
  }

  //! Calls move(from, to) for all ranks, those that it comes from in their order.
  template <class Move>
  [[nodiscard]] status each_pair(Move const& move) const
  {
    auto const ranks = static_cast<std::size_t>(group_.ranks());
    for (std::size_t from = 0; from < ranks; ++from) {
      for (std::size_t to = 0; to < ranks; ++to) {
        if (status const s = move(from, to); !s.ok()) { return s; }
      }
    }
    return {};
  }

  //! Rank 0 does the round for all, while the others wait.
  template <class Round, class Exchange>
  [[nodiscard]] status together(Round const& round, Exchange const& exchange)
  {
    uncounted_allocations const of_the_collective;
    status const lost{error_code::transport_failed, "a rank did not come"};
    if (!group_.show(rank_, std::as_bytes(std::span{&round, 1}))) { return lost; }
    status outcome;
    if (rank_ == 0) {
      std::vector<Round> all;
      for (int rank = 0; rank < group_.ranks(); ++rank) {
        all.push_back(*reinterpret_cast<Round const*>(group_.shown(rank).data()));
      }
      outcome = exchange(all);
    }
    return group_.meet() ? outcome : lost;
  }

  Executor exec_;
  loopback_group& group_;
  int rank_;
  bool hostile_;
  int rounds_ = 0;
  fnv_digest sent_;
};

//! The gradient of a rank in a step, from integers alone, so that every machine makes the same one.
template <class Element>
[[nodiscard]] std::vector<Element> integer_gradient(std::size_t coordinates, int rank, int step)
{
  std::vector<Element> out(coordinates);
  std::uint32_t x = 12345u + static_cast<std::uint32_t>(rank + 1000 * step);
  for (std::size_t i = 0; i < coordinates; ++i) {
    x                 = x * 1664525u + 1013904223u;
    float const value = static_cast<float>(static_cast<std::int32_t>(x >> 8) - (1 << 23));
    out[i]            = from_float<Element>(value * (i % 700 < 350 ? 0x1p-30f : 0x1p-24f));
  }
  return out;
}

//! What golden exchanges have a gradient of.
class golden_gradient {
 public:
  //! @param rows  Of the largest matrix, of 80 columns. Besides it a gradient has 2025 coordinates.
  explicit golden_gradient(std::uint64_t rows = 129)
    : tensors_{{{.rows = 70, .columns = 20},
                {.rows = 101, .offset = 1400},
                {.rows = 3, .columns = 5, .offset = 1501},
                {.rows = rows, .columns = 80, .offset = 1516},
                {.rows = 1, .columns = 509, .offset = 1516 + 80 * rows}}}
  {
  }

  //! No chunk divides the odd length.
  [[nodiscard]] layout vector() const { return {.coordinates = tensors_.back().offset + 509}; }

  //! Of the tensors the vectors bypass, and the matrix that is small. Valid as long as this.
  [[nodiscard]] layout tensors() const
  {
    return {.coordinates = vector().coordinates, .tensors = tensors_, .bypass_below = 16};
  }

 private:
  std::array<tensor, 5> tensors_;
};

//! What a rank of an exchange sent, what it ended with, and its state.
struct rank_digests {
  fnv_digest sent = {}, means = {};
  std::uint64_t of_plan     = 0;   // what the state says of its plan
  fnv_digest state          = {};  // the rest of it
  status outcome            = {};
  std::uint64_t allocations = 0;  // of exchanges after the first
};

//! A codec for gradients of an element, behind an interface: what is the same for all codecs is compiled once.
template <class Executor>
class digested_codec {
 public:
  virtual ~digested_codec() = default;

  [[nodiscard]] virtual status check(layout const& gradient, world const& ranks) const = 0;

  //! Whether all ranks end with the same values.
  [[nodiscard]] virtual bool ends_alike() const = 0;

  //! @brief Three exchanges of one rank, which is a thread.
  //! @param filling  What the workspace holds before an exchange, which nothing may depend on.
  [[nodiscard]] virtual rank_digests exchange(layout const& gradient,
                                              world const& ranks,
                                              Executor const& exec,
                                              loopback_group& group,
                                              std::byte filling,
                                              bool hostile) const = 0;
};

template <class Codec, class Element, class Executor = cpu_executor, class Memory = host_memory>
class digested final : public digested_codec<Executor> {
 public:
  explicit digested(Codec const& codec) : codec_(codec) {}

  [[nodiscard]] status check(layout const& gradient, world const& ranks) const override
  {
    return codec_.plan(gradient, ranks).check();
  }

  [[nodiscard]] bool ends_alike() const override { return !ending_in_shards<Codec>; }

  [[nodiscard]] rank_digests exchange(layout const& gradient,
                                      world const& ranks,
                                      Executor const& exec,
                                      loopback_group& group,
                                      std::byte filling,
                                      bool hostile) const override
  {
    using buffer    = typename Memory::buffer;
    auto const plan = codec_.plan(gradient, ranks);
    std::size_t own = 0;
    if constexpr (ending_in_shards<Codec> || publishing<Codec>) { own = plan.shard_size(); }
    buffer const kept{plan.state_bytes(), 0, filling};
    buffer const scratch{plan.workspace_bytes(), 0, filling};
    buffer const values{plan.coordinates() * sizeof(Element), 0, std::byte{0}};
    buffer const shard{own * sizeof(Element), 0, std::byte{0}};
    std::span const all{reinterpret_cast<Element*>(values.contents().data()), plan.coordinates()};
    std::span const part{reinterpret_cast<Element*>(shard.contents().data()), own};
    auto const state     = kept.contents();
    auto const workspace = scratch.contents();
    digesting_collective<Executor, Memory> collective{exec, group, ranks.rank, hostile};
    rank_digests result;
    result.outcome = initialize(exec, plan, state, 0x7e25);
    for (int step = 0; step < 3 && result.outcome.ok(); ++step) {
      byte_string const filled(workspace.size(), filling);
      // Shards are those of one gradient, which nobody has to sum.
      int const of         = publishing<Codec> ? 0 : ranks.rank;
      auto const in        = integer_gradient<Element>(plan.coordinates(), of, step);
      std::span const read = std::as_bytes(std::span{in});
      if constexpr (publishing<Codec>) {
        shard.write(
          read.subspan(plan.shard_begin(ranks.rank) * sizeof(Element), own * sizeof(Element)));
      } else {
        values.write(read);
      }
      scratch.write(filled);
      auto const asked = allocations_of([&] {
        if constexpr (publishing<Codec>) {
          result.outcome = all_gather_values(exec, plan, part, all, state, workspace, collective);
        } else if constexpr (ending_in_shards<Codec>) {
          result.outcome = reduce_scatter_mean(exec, plan, all, part, state, workspace, collective);
        } else {
          result.outcome = all_reduce_mean(exec, plan, all, state, workspace, collective);
        }
      });
      // In the first one OpenMP may start threads; LLVM's runtime asks in each region of several.
      if constexpr (std::same_as<Executor, cpu_executor>) {
        if (step > 0 && (exec.threads == 1 || !asks_in_regions)) { result.allocations += asked; }
      }
      Memory::read(std::as_bytes(ending_in_shards<Codec> ? part : all),
                   [&](std::span<std::byte const> bytes) {
                     result.means.add(bytes);
                     if (ranks.size == 2 && plan.all_bypass()) {
                       auto const mean = float_mean(plan, in, step);
                       CHECK(std::ranges::equal(bytes, std::as_bytes(std::span{mean})));
                     }
                   });
    }
    result.sent       = collective.sent();
    byte_string bytes = kept.read(0, state.size());
    if (bytes.size() >= sizeof(state_header)) {
      std::byte* const of_plan = bytes.data() + offsetof(state_header, layout);
      std::memcpy(&result.of_plan, of_plan, sizeof(result.of_plan));
      std::memset(of_plan, 0, sizeof(result.of_plan));
    }
    result.state.add(bytes);
    return result;
  }

 private:
  //! What a rank of two ends with if all coordinates travel as floats.
  [[nodiscard]] static std::vector<Element> float_mean(tersum::plan<Codec> const& plan,
                                                       std::vector<Element> mean,
                                                       int step)
  {
    if constexpr (publishing<Codec>) { return mean; }
    auto const other = integer_gradient<Element>(mean.size(), 1 - plan.ranks().rank, step);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] = from_float<Element>((to_float(mean[i]) + to_float(other[i])) / 2);
    }
    if constexpr (ending_in_shards<Codec>) {
      auto const begin =
        mean.begin() + static_cast<std::ptrdiff_t>(plan.shard_begin(plan.ranks().rank));
      return {begin, begin + static_cast<std::ptrdiff_t>(plan.shard_size())};
    }
    return mean;
  }

  Codec codec_;
};

//! @brief Of a line of a golden file.
struct golden_digests {
  std::string exchanges;  //!< `bytes sent means`, or `refused`
  std::string states;     //!< `states plan rest`, or `refused`
};

template <class Executor>
[[nodiscard]] golden_digests digest_exchanges(digested_codec<Executor> const& codec,
                                              layout const& gradient,
                                              int ranks,
                                              Executor const& exec,
                                              std::byte filling,
                                              bool hostile = false)
{
  for (int rank = 0; rank < ranks; ++rank) {
    if (!codec.check(gradient, {.size = ranks, .rank = rank}).ok()) {
      return {"refused", "refused"};
    }
  }
  std::vector<rank_digests> all(static_cast<std::size_t>(ranks));
  loopback_group group{ranks};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      all[static_cast<std::size_t>(rank)] =
        codec.exchange(gradient, {.size = ranks, .rank = rank}, exec, group, filling, hostile);
    });
  }
  for (std::thread& thread : threads) { thread.join(); }

  fnv_digest sent, means, states, of_plans;
  std::uint64_t bytes = 0, state_bytes = 0;
  auto const add = [](fnv_digest& digest, std::uint64_t value) {
    digest.add(std::as_bytes(std::span{&value, 1}));
  };
  for (auto const& rank : all) {
    CHECK(rank.outcome == status{});
    CHECK(rank.allocations == 0);
    CHECK((hostile || !codec.ends_alike() || rank.means.value() == all[0].means.value()));
    add(sent, rank.sent.value());
    add(means, rank.means.value());
    add(of_plans, rank.of_plan);
    add(states, rank.state.value());
    bytes += rank.sent.size();
    state_bytes += rank.state.size();
  }
  std::uint64_t const ends = codec.ends_alike() ? all[0].means.value() : means.value();
  std::ostringstream exchanges, kept;
  exchanges << bytes << std::hex << ' ' << sent.value() << ' ' << ends;
  kept << state_bytes << std::hex << ' ' << of_plans.value() << ' ' << states.value();
  return {exchanges.str(), kept.str()};
}

//! What exchanges of all golden worlds gave.
struct golden_worlds {
  std::string held;  //!< with two ranks' tensors; of codecs that take none, with their vector
  std::string all;   //!< a line for each world

  [[nodiscard]] std::string digest() const
  {
    fnv_digest of_all;
    of_all.add(std::as_bytes(std::span{all}));
    std::ostringstream text;
    text << std::hex << of_all.value();
    return text.str();
  }
};

//! Asks exchanges(world, layout, ranks) for the text of each world, where `world` describes it.
template <class Exchanges>
[[nodiscard]] golden_worlds digest_worlds(golden_gradient const& gradient,
                                          Exchanges const& exchanges)
{
  golden_worlds worlds;
  for (int const ranks : {1, 2, 5}) {
    for (bool const as_tensors : {false, true}) {
      std::string const world = std::to_string(ranks) + (as_tensors ? " tensors" : " vector");
      std::string const text =
        exchanges(world, as_tensors ? gradient.tensors() : gradient.vector(), ranks);
      worlds.all += world + ": " + text + '\n';
      if (ranks == 2 && text != "refused") { worlds.held = text; }
    }
  }
  return worlds;
}

//! @brief Checks that no plan has more bytes than floats, and that a vector which codes would make larger arrives as the float mean.
template <class Element, class Memory = host_memory, class Executor, class Codec>
void check_floats(Executor const& exec, Codec const& codec)
{
  static constexpr tensor matrices[] = {{.rows = 9, .columns = 100},
                                        {.rows = 2, .columns = 50, .offset = 900}};
  for (int const ranks : {2, 64, 1024}) {
    for (std::uint64_t const d : {1u, 100u, 1000u, 4096u, 100000u}) {
      CHECK(codec.plan(layout{d}, {.size = ranks, .rank = 1}).wire_bytes() <= 4 * d);
    }
    auto const plan = codec.plan(layout{1000, matrices}, {.size = ranks, .rank = 1});
    CHECK((plan.wire_bytes() <= 4000 || is_low_rank<Codec>));
  }
  layout const few{50};
  CHECK(codec.plan(few, {.size = 2, .rank = 1}).all_bypass() !=
        ((casts<Codec> && !selects<Codec>) || gathering<Codec>));
  static_cast<void>(digest_exchanges<Executor>(
    digested<Codec, Element, Executor, Memory>{codec}, few, 2, exec, std::byte{0x3c}));
}

//! The lines of a golden file: what is before the colon of each, and what is behind it.
[[nodiscard]] inline std::map<std::string, std::string> golden_lines(
  std::filesystem::path const& path)
{
  std::ifstream file(path);
  REQUIRE(file.good());
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(file, line);) {
    CAPTURE(line);
    auto const colon = line.rfind(": ");
    REQUIRE(colon != std::string::npos);
    CHECK(lines.emplace(line.substr(0, colon), line.substr(colon + 2)).second);
  }
  return lines;
}

//! The lines of all files of tests/golden.
[[nodiscard]] inline std::map<std::string, std::string> all_golden_lines()
{
  std::map<std::string, std::string> all;
  for (auto const& entry : std::filesystem::directory_iterator("tests/golden")) {
    if (entry.path().extension() != ".txt") { continue; }
    auto lines = golden_lines(entry.path());
    all.merge(lines);
    CHECK(lines.empty());  // of no other file
  }
  return all;
}

//! @brief Checks that an executor gives the bytes of the golden line to which the CPU is held, of two ranks.
template <class Element, class Memory, class Executor, class Codec>
void check_golden(Executor const& exec, std::string const& name, Codec const& codec)
{
  static auto const lines = all_golden_lines();
  golden_gradient const gradient;
  bool const takes_tensors = codec.plan(gradient.tensors(), {.size = 2, .rank = 0}).check().ok();
  std::string const line   = name + (std::same_as<Element, float> ? " float" : " bfloat16");
  CAPTURE(line);
  digested<Codec, Element, Executor, Memory> const exchanged{codec};
  auto const got = digest_exchanges<Executor>(
    exchanged, takes_tensors ? gradient.tensors() : gradient.vector(), 2, exec, std::byte{0x3c});
  REQUIRE(got.exchanges != "refused");
  check_floats<Element, Memory>(exec, codec);
  auto const held = lines.find(line);
  REQUIRE(held != lines.end());
  CHECK(held->second.substr(0, got.exchanges.size() + 1) == got.exchanges + ' ');
}

}  // namespace tersum::tests
