// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges whose bytes are digested, on any executor: what all ranks give to all rounds, what they end with, and their states.
//! The files tests/golden/*.txt hold the digests.

#pragma once

#include "exchange_run.hpp"
#include "fnv_digest.hpp"

#include <tersum/codec_kinds.hpp>

#include <doctest/doctest.h>

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
#include <vector>

namespace tersum::tests {

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
  std::uint64_t of_plan = 0;   // what the state says of its plan
  fnv_digest state      = {};  // the rest of it
};

//! A codec for gradients of an element, behind an interface: what is the same for all codecs is compiled once.
template <class Executor>
class digested_codec {
 public:
  virtual ~digested_codec() = default;

  [[nodiscard]] virtual status check(layout const& gradient, world const& ranks) const = 0;

  //! Whether all ranks end with the same values.
  [[nodiscard]] virtual bool ends_alike() const = 0;

  //! @brief Three exchanges.
  //! @param filling  What the workspace holds before an exchange, which nothing may depend on.
  [[nodiscard]] virtual std::vector<rank_digests> exchange(layout const& gradient,
                                                           int ranks,
                                                           Executor const& exec,
                                                           std::byte filling,
                                                           bool hostile) const = 0;
};

template <class Codec, class Element, class Executor = cpu_executor, class Buffer = host_buffer>
class digested final : public digested_codec<Executor> {
 public:
  explicit digested(Codec const& codec) : codec_(codec) {}

  [[nodiscard]] status check(layout const& gradient, world const& ranks) const override
  {
    return codec_.plan(gradient, ranks).check();
  }

  [[nodiscard]] bool ends_alike() const override { return !ending_in_shards<Codec>; }

  [[nodiscard]] std::vector<rank_digests> exchange(layout const& gradient,
                                                   int ranks,
                                                   Executor const& exec,
                                                   std::byte filling,
                                                   bool hostile) const override
  {
    exchange_case<Codec, Element> const c{.codec    = codec_,
                                          .gradient = gradient,
                                          .world    = ranks,
                                          .order    = reduction_order::ring,
                                          .seed     = 0x7e25};
    exchange_run<Buffer, Codec, Element> run{exec, c, filling};
    std::vector<rank_digests> all(run.size());
    int rounds = 0;
    for (int step = 0; step < 3; ++step) {
      run.fill_workspaces(filling);
      auto const in = c.given_by(
        [&](int rank) { return integer_gradient<Element>(gradient.coordinates, rank, step); });
      run.exchange(exec, in, [&](auto round, bool arrived) {
        if (!arrived) {
          run.for_each_piece(
            round, false, [&](auto const& piece) { all[piece.rank].sent.add(run.read(piece)); });
        } else if (hostile) {
          run.disturb(round, rounds++);
        }
      });
      for (std::size_t rank = 0; rank < run.size(); ++rank) {
        all[rank].means.add(run.result(rank));
      }
    }
    for (std::size_t rank = 0; rank < run.size(); ++rank) {
      byte_string bytes        = run.kept(rank);
      std::byte* const of_plan = bytes.data() + offsetof(state_header, layout);
      std::memcpy(&all[rank].of_plan, of_plan, sizeof(all[rank].of_plan));
      std::memset(of_plan, 0, sizeof(all[rank].of_plan));
      all[rank].state.add(bytes);
    }
    return all;
  }

 private:
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
  auto const all = codec.exchange(gradient, ranks, exec, filling, hostile);
  fnv_digest sent, means, states, of_plans;
  std::uint64_t bytes = 0, state_bytes = 0;
  auto const add = [](fnv_digest& digest, std::uint64_t value) {
    digest.add(std::as_bytes(std::span{&value, 1}));
  };
  for (auto const& rank : all) {
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
template <class Element, class Buffer = host_buffer, class Executor, class Codec>
void check_floats(Executor const& exec, Codec const& codec)
{
  static constexpr tensor matrices[] = {{.rows = 9, .columns = 100},
                                        {.rows = 2, .columns = 50, .offset = 900}};
  for (int const ranks : {2, 64, 1024}) {
    for (std::uint64_t const d : {1u, 100u, 1000u, 4096u, 100000u}) {
      CHECK(codec.plan(layout{d}, {.size = ranks, .rank = 1}).wire_bytes() <= 4 * d);
    }
    auto const large = codec.plan(layout{1000, matrices}, {.size = ranks, .rank = 1});
    CHECK((large.wire_bytes() <= 4000 || is_low_rank<Codec>));
  }
  exchange_case<Codec, Element> const few{.codec = codec, .gradient = {50}};
  auto const plan = codec.plan(few.gradient, {.size = 2, .rank = 1});
  CHECK(plan.all_bypass() != ((casts<Codec> && !selects<Codec>) || gathering<Codec>));
  if (!plan.check().ok()) { return; }  // low-rank codecs take tensors
  exchange_run<Buffer, Codec, Element> run{exec, few, std::byte{0x3c}};
  auto const of_rank = [](int rank) { return integer_gradient<Element>(50, rank, 0); };
  auto const got     = joined<Codec>(run.exchange(exec, few.given_by(of_rank)));
  auto const first = of_rank(0), second = of_rank(publishing<Codec> ? 0 : 1);
  for (std::size_t i = 0; i < 50 && plan.all_bypass(); ++i) {
    CHECK(got[i] == from_float<Element>((to_float(first[i]) + to_float(second[i])) / 2));
  }
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
template <class Element, class Buffer, class Executor, class Codec>
void check_golden(Executor const& exec, std::string const& name, Codec const& codec)
{
  static auto const lines = all_golden_lines();
  golden_gradient const gradient;
  bool const takes_tensors = codec.plan(gradient.tensors(), {.size = 2, .rank = 0}).check().ok();
  std::string const line   = name + (std::same_as<Element, float> ? " float" : " bfloat16");
  CAPTURE(line);
  digested<Codec, Element, Executor, Buffer> const exchanged{codec};
  auto const got = digest_exchanges<Executor>(
    exchanged, takes_tensors ? gradient.tensors() : gradient.vector(), 2, exec, std::byte{0x3c});
  REQUIRE(got.exchanges != "refused");
  check_floats<Element, Buffer>(exec, codec);
  auto const held = lines.find(line);
  REQUIRE(held != lines.end());
  CHECK(held->second.substr(0, got.exchanges.size() + 1) == got.exchanges + ' ');
}

}  // namespace tersum::tests
