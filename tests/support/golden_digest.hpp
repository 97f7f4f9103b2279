// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Digests of what presets send, of the means they make and of the states they keep, held against files. TERSUM_WRITE_GOLDEN=1 in
//! the environment writes the files anew.
//!
//! A line is `preset element: bytes sent means worlds states plan rest`. The first three are of the tensors of two ranks, or of the vector
//! of codecs that take no tensors: how many bytes all ranks gave to all rounds of three exchanges, a digest of those bytes, and a digest of
//! the three means, of which codecs of shards give each rank a part. Feedback goes on from one exchange to the next, so the later ones show
//! the state too. `worlds` is a digest of such texts for one, two and five ranks, each with the vector and with the tensors, where `refused`
//! stands for a world of which the preset has no plan. The last three are of the tensors of five ranks in float and of the vector of two in
//! bfloat16, or `refused`: the size of all ranks' states after these exchanges, a digest of what they say of their plans
//! (`state_header::layout`), and one of all else in them.

#pragma once

#include "check_draining.hpp"
#include "golden_exchange.hpp"
#include "preset_lists.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <interop/presets.hpp>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace tersum::tests {

#if defined(TERSUM_FEW_CODECS) || defined(TERSUM_FEW_ELEMENTS)
inline constexpr bool few_elements = true;
#else
inline constexpr bool few_elements = false;
#endif

//! A group of presets and the file that holds their digests, tests/golden/<group>.txt. With TERSUM_FEW_CODECS, which is for a second
//! compiler, or TERSUM_FEW_ELEMENTS, presets are digested in float only, those of `describe_fully` in bfloat16 as well.
class golden_presets {
 public:
  explicit golden_presets(std::string group) : group_(std::move(group)) {}

  //! @brief Digests a preset's exchanges in float and in bfloat16, and checks that its residuals drain, if it has any.
  //! @param rows  Of the largest matrix, of 80 columns. Besides it a gradient has 2025 coordinates.
  template <class Codec>
  void describe(std::string_view name, Codec const& codec, std::uint64_t rows = 129)
  {
    if constexpr (few_elements) {
      describe_all(std::string{name} + " float", digested<Codec, float>{codec}, rows);
      check_floats<float>(cpu_executor{}, codec);
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
    check_floats<float>(cpu_executor{}, codec);
    check_floats<bfloat16>(cpu_executor{}, codec);
    if constexpr (feeds_back<Codec> && !ending_in_shards<Codec> && !publishing<Codec>) {
      CAPTURE(name);
      check_draining<float>(codec, 1e5f, 1.9e5f);
      check_draining<float>(codec, 1e3f, 3e3f, true, 10);
    }
  }

  //! @brief A kind of codec without a name, in float only, under a description of several words.
  template <class Codec>
  void describe_kind(std::string_view words, Codec const& codec)
  {
    describe_all(std::string{words} + " float", digested<Codec, float>{codec}, 129);
    check_floats<float>(cpu_executor{}, codec);
  }

  //! Compares what was described with the file, or writes the file.
  void check() const
  {
    std::string const path  = "tests/golden/" + group_ + ".txt";
    char const* const write = std::getenv("TERSUM_WRITE_GOLDEN");
    if (write != nullptr && std::string_view{write} == "1") {
      REQUIRE(!few_elements);  // not all lines are there
      std::ofstream file(path);
      for (auto const& [name, text] : lines_) { file << name << ": " << text << '\n'; }
      MESSAGE("wrote ", path);
    }
    std::size_t count = 0;
    for (auto const& held : golden_lines(path)) {
      std::string const& line = held.first;  // clang 14 captures no structured binding
      auto const got          = lines_.find(line);
      CAPTURE(line);
      if (few_elements && got == lines_.end()) {
        CHECK(line.find(" bfloat16") != std::string::npos);
        continue;
      }
      ++count;
      REQUIRE(got != lines_.end());
      CAPTURE(in_worlds_.at(line));
      CHECK(got->second == held.second);
    }
    CHECK(count == lines_.size());
  }

 private:
  //! All worlds and both layouts.
  void describe_all(std::string const& name,
                    digested_codec<cpu_executor> const& codec,
                    std::uint64_t rows)
  {
    golden_gradient const gradient{rows};
    std::string states;
    auto const worlds =
      digest_worlds(gradient, [&](std::string const& world, layout const& of, int ranks) {
        auto const got         = digest_world(name + ' ' + world, codec, of, ranks);
        bool const is_of_float = name.ends_with(" float");
        // Of the states those of one world show enough.
        if (world == (is_of_float ? "5 tensors" : "2 vector")) { states = got.states; }
        return got.exchanges;
      });
    lines_[name]     = worlds.held + ' ' + worlds.digest() + ' ' + states;
    in_worlds_[name] = worlds.all;
  }

  //! Neither the instruction set nor what the workspace holds may make a difference.
  static golden_digests digest_world(std::string const& line,
                                     digested_codec<cpu_executor> const& codec,
                                     layout const& gradient,
                                     int ranks)
  {
    CAPTURE(line);
    cpu_executor const best,
      baseline{.threads = ranks == 2 ? 2 : 1, .instructions = instruction_set::baseline};
    auto const got   = digest_exchanges(codec, gradient, ranks, best, std::byte{0});
    auto const again = digest_exchanges(codec, gradient, ranks, baseline, std::byte{0xa5});
    CHECK(again.exchanges == got.exchanges);
    CHECK(again.states == got.states);
    // Whatever arrives, no rank touches other memory than its own: see `host_buffer`.
    static_cast<void>(digest_exchanges(codec, gradient, ranks, best, std::byte{0xff}, true));
    return got;
  }

  std::string group_;
  std::map<std::string, std::string> lines_;
  std::map<std::string, std::string> in_worlds_;  // what `worlds` are digests of
};

}  // namespace tersum::tests

//! Describes the preset of that name in `golden`.
#define TERSUM_DESCRIBE(name)                                                                      \
  golden.describe(#name, tersum::tests::of_any_matrix(tersum::presets::name))
#define TERSUM_DESCRIBE_FULLY(name)                                                                \
  golden.describe_fully(#name, tersum::tests::of_any_matrix(tersum::presets::name))
