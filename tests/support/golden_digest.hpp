// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Digests of what presets send and of the means they make, held against a file. TERSUM_WRITE_GOLDEN=1 in the
//! environment writes the file anew.
//!
//! A line of the file is `preset element ranks layout: bytes sent means`: how many bytes all ranks gave to all rounds of
//! three exchanges, a digest of those bytes, and a digest of the three means. Feedback goes on from one exchange to the
//! next, so the later ones show the state too. `refused` stands where the preset has no plan for such a world.

#pragma once

#include "check_draining.hpp"
#include "count_allocations.hpp"
#include "fnv_digest.hpp"
#include "host_buffer.hpp"

#include <tersum/codec_kinds.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/single_process/loopback_transport.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace tersum::tests {

//! The collective of one rank, which is a thread: it digests what the rank gives to a round, and exchanges it. A
//! hostile one gives the rank something else.
class digesting_collective {
 public:
  digesting_collective(cpu_executor const& exec, loopback_group& group, int rank, bool hostile)
    : exec_(exec), group_(group), rank_(rank), hostile_(hostile)
  {
  }

  template <reduce_op Op>
  [[nodiscard]] status operator()(wire<Op> const& round)
  {
    disturb_if_hostile(std::span{round.data, round.count});
    sent_.add(std::as_bytes(std::span{round.data, round.count}));
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
    sent_.add(std::as_bytes(std::span{round.data + own, round.count}));
    status const gathered = together(round, [&](std::vector<gather_wire<T>> const& all) {
      for (std::size_t from = 0; from < all.size(); ++from) {
        for (gather_wire<T> const& to : all) {
          T const* const part = all[from].data + from * round.count;
          if (to.data != all[from].data) {
            std::copy_n(part, round.count, to.data + from * round.count);
          }
        }
      }
      return status{};
    });
    disturb_if_hostile(
      std::span{round.data, static_cast<std::size_t>(group_.ranks()) * round.count});
    return gathered;
  }

  template <class T>
  [[nodiscard]] status operator()(scatter_wire<T> const& round)
  {
    std::size_t const ranks = static_cast<std::size_t>(round.ranks);
    sent_.add(std::as_bytes(std::span{round.sent, ranks * round.count}));
    status const scattered = together(round, [&](std::vector<scatter_wire<T>> const& all) {
      for (std::size_t from = 0; from < all.size(); ++from) {
        for (std::size_t to = 0; to < all.size(); ++to) {
          std::copy_n(
            all[from].sent + to * round.count, round.count, all[to].received + from * round.count);
        }
      }
      return status{};
    });
    disturb_if_hostile(std::span{round.received, ranks * round.count});
    return scattered;
  }

  [[nodiscard]] fnv_digest const& sent() const { return sent_; }

 private:
  template <class T>
  void disturb_if_hostile(std::span<T> sent)
  {
    if (hostile_) { disturb(std::as_writable_bytes(sent), rank_ + rounds_++); }
  }

  //! Rank 0 does the round for all, while the others wait.
  template <class Round, class Exchange>
  [[nodiscard]] status together(Round const& round, Exchange const& exchange)
  {
    uncounted_allocations const of_the_collective;
    status const lost{error_code::transport_failed, "a rank did not come"};
    if (!group_.show(rank_, reinterpret_cast<std::byte const*>(&round))) { return lost; }
    status outcome;
    if (rank_ == 0) {
      std::vector<Round> all;
      for (int rank = 0; rank < group_.ranks(); ++rank) {
        all.push_back(*reinterpret_cast<Round const*>(group_.shown(rank)));
      }
      outcome = exchange(all);
    }
    return group_.meet() ? outcome : lost;
  }

  cpu_executor exec_;
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

//! What a rank of an exchange sent, and its means.
struct rank_digests {
  fnv_digest sent = {}, means = {};
  status outcome            = {};
  std::uint64_t allocations = 0;  // of exchanges after the first
};

//! A codec for gradients of an element, behind an interface: what is the same for all codecs is compiled once.
class digested_codec {
 public:
  virtual ~digested_codec() = default;

  [[nodiscard]] virtual status check(layout const& gradient, world const& ranks) const = 0;

  //! @brief Three exchanges of one rank, which is a thread.
  //! @param filling  What the workspace holds before an exchange, which nothing may depend on.
  [[nodiscard]] virtual rank_digests exchange(layout const& gradient,
                                              world const& ranks,
                                              cpu_executor const& exec,
                                              loopback_group& group,
                                              std::byte filling,
                                              bool hostile) const = 0;
};

template <class Codec, class Element>
class digested final : public digested_codec {
 public:
  explicit digested(Codec const& codec) : codec_(codec) {}

  [[nodiscard]] status check(layout const& gradient, world const& ranks) const override
  {
    return codec_.plan(gradient, ranks).check();
  }

  [[nodiscard]] rank_digests exchange(layout const& gradient,
                                      world const& ranks,
                                      cpu_executor const& exec,
                                      loopback_group& group,
                                      std::byte filling,
                                      bool hostile) const override
  {
    auto const plan = codec_.plan(gradient, ranks);
    host_buffer const kept{plan.state_bytes(), 0, filling};
    host_buffer const scratch{plan.workspace_bytes(), 0, filling};
    auto const state     = kept.contents();
    auto const workspace = scratch.contents();
    digesting_collective collective{exec, group, ranks.rank, hostile};
    rank_digests result;
    result.outcome = initialize(exec, plan, state, 0x7e25);
    for (int step = 0; step < 3 && result.outcome.ok(); ++step) {
      auto values = integer_gradient<Element>(plan.coordinates(), ranks.rank, step);
      std::fill(workspace.begin(), workspace.end(), filling);
      auto const asked = allocations_of([&] {
        result.outcome = all_reduce_mean(exec, plan, values, state, workspace, collective);
      });
      // In the first one OpenMP may start threads; LLVM's runtime asks in each region of several.
      if (step > 0 && (exec.threads == 1 || !asks_in_regions)) { result.allocations += asked; }
      result.means.add(std::as_bytes(std::span{values}));
    }
    result.sent = collective.sent();
    return result;
  }

 private:
  Codec codec_;
};

//! The text after the colon of a line.
[[nodiscard]] inline std::string digest_exchanges(digested_codec const& codec,
                                                  layout const& gradient,
                                                  int ranks,
                                                  cpu_executor const& exec,
                                                  std::byte filling,
                                                  bool hostile = false)
{
  for (int rank = 0; rank < ranks; ++rank) {
    if (!codec.check(gradient, {.size = ranks, .rank = rank}).ok()) { return "refused"; }
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

  fnv_digest sent;
  std::uint64_t bytes = 0;
  for (auto const& rank : all) {
    CHECK(rank.outcome == status{});
    CHECK(rank.allocations == 0);
    CHECK((hostile || rank.means.value() == all[0].means.value()));
    std::uint64_t const value = rank.sent.value();
    sent.add(std::as_bytes(std::span{&value, 1}));
    bytes += rank.sent.size();
  }
  std::ostringstream text;
  text << bytes << std::hex << ' ' << sent.value() << ' ' << all[0].means.value();
  return text.str();
}

#if defined(TERSUM_FEW_CODECS)
inline constexpr bool few_elements = true;
#else
inline constexpr bool few_elements = false;
#endif

//! Presets and the file that holds their digests. With TERSUM_FEW_CODECS, which is for a second compiler, presets are digested in
//! float only, those of `describe_fully` in bfloat16 as well.
class golden_presets {
 public:
  explicit golden_presets(std::string path) : path_(std::move(path)) {}

  //! @brief Digests a preset's exchanges in float and in bfloat16, and checks that its residuals drain, if it has any.
  //! @param rows  Of the largest matrix, of 80 columns. Besides it a gradient has 2025 coordinates.
  template <class Codec>
  void describe(std::string_view name, Codec const& codec, std::uint64_t rows = 129)
  {
    if constexpr (few_elements) {
      describe_all(std::string{name} + " float", digested<Codec, float>{codec}, rows);
    } else {
      describe_fully(name, codec, rows);
    }
  }

  //! @brief The same with every compiler.
  template <class Codec>
  void describe_fully(std::string_view name, Codec const& codec, std::uint64_t rows = 129)
  {
    describe_all(std::string{name} + " float", digested<Codec, float>{codec}, rows);
    describe_all(std::string{name} + " bfloat16", digested<Codec, bfloat16>{codec}, rows);
    if constexpr (feeds_back<Codec>) {
      CAPTURE(name);
      check_draining<float>(codec, 1e5f, 1.9e5f);
      check_draining<float>(codec, 1e3f, 3e3f, true, 10);
    }
  }

  //! Compares what was described with the file, or writes the file.
  void check() const
  {
    char const* const write = std::getenv("TERSUM_WRITE_GOLDEN");
    if (write != nullptr && std::string_view{write} == "1") {
      REQUIRE(!few_elements);  // not all lines are there
      std::ofstream file(path_);
      for (auto const& [name, text] : lines_) { file << name << ": " << text << '\n'; }
      MESSAGE("wrote ", path_);
    }
    std::ifstream file(path_);
    REQUIRE(file.good());
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);) {
      auto const colon = line.rfind(": ");
      auto const got   = lines_.find(line.substr(0, colon));
      CAPTURE(line);
      if (few_elements && got == lines_.end()) {
        CHECK(line.find(" bfloat16 ") < colon);
        continue;
      }
      ++count;
      REQUIRE(got != lines_.end());
      CHECK(got->second == line.substr(colon + 2));
    }
    CHECK(count == lines_.size());
  }

 private:
  //! All worlds and both layouts.
  void describe_all(std::string const& name, digested_codec const& codec, std::uint64_t rows)
  {
    // No chunk divides the odd length. Of the tensors the vectors bypass, and the matrix that is small.
    std::uint64_t const behind = 1516 + 80 * rows;
    std::array<tensor, 5> const tensors{{{.rows = 70, .columns = 20},
                                         {.rows = 101, .offset = 1400},
                                         {.rows = 3, .columns = 5, .offset = 1501},
                                         {.rows = rows, .columns = 80, .offset = 1516},
                                         {.rows = 1, .columns = 509, .offset = behind}}};
    layout const vector{.coordinates = behind + 509};
    layout const bucket{.coordinates = behind + 509, .tensors = tensors, .bypass_below = 16};
    for (int const ranks : {1, 2, 5}) {
      describe_line(name + ' ' + std::to_string(ranks) + " vector", codec, vector, ranks);
      describe_line(name + ' ' + std::to_string(ranks) + " tensors", codec, bucket, ranks);
    }
  }

  //! Neither the instruction set nor what the workspace holds may make a difference.
  void describe_line(std::string const& line,
                     digested_codec const& codec,
                     layout const& gradient,
                     int ranks)
  {
    CAPTURE(line);
    cpu_executor const best,
      baseline{.threads = ranks == 2 ? 2 : 1, .instructions = instruction_set::baseline};
    std::string const text = digest_exchanges(codec, gradient, ranks, best, std::byte{0});
    CHECK(digest_exchanges(codec, gradient, ranks, baseline, std::byte{0xa5}) == text);
    lines_[line] = text;
    // Whatever arrives, no rank touches other memory than its own: see `host_buffer`.
    static_cast<void>(digest_exchanges(codec, gradient, ranks, best, std::byte{0xff}, true));
  }

  std::string path_;
  std::map<std::string, std::string> lines_;
};

}  // namespace tersum::tests

//! Describes the preset of that name.
#define TERSUM_DESCRIBE(golden, name)       (golden).describe(#name, tersum::presets::name)
#define TERSUM_DESCRIBE_FULLY(golden, name) (golden).describe_fully(#name, tersum::presets::name)
