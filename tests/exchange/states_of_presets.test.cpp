// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A state is accepted by the codec that made it; all others refuse it.

#include "support/golden_exchange.hpp"
#include "support/preset_names.hpp"

#include <tersum/exchange/check_state.hpp>
#include <tersum/exchange/exchange.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <interop/presets.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

using namespace tersum;

namespace {

// A preset's plan of one rank, and the state that it makes.
struct preset_state {
  std::string name;
  std::vector<word4> words;
  std::function<status(std::span<std::byte const>)> check;
};

template <class Codec>
preset_state state_of(std::string const& name, Codec const& preset)
{
  static tests::golden_gradient const gradient;
  auto const codec = tests::of_any_matrix(preset);
  world const ranks{.size = 3, .rank = 1};
  auto plan = codec.plan(gradient.tensors(), ranks);
  // TopK takes no tensors.
  if (!plan.check().ok()) { plan = codec.plan(gradient.vector(), ranks); }
  REQUIRE(plan.check() == status{});
  std::size_t const most = 64 * plan.coordinates();
  REQUIRE(plan.state_bytes() < most);
  std::vector<word4> words(most / sizeof(word4));
  REQUIRE(initialize(cpu_executor{}, plan, std::as_writable_bytes(std::span{words}), 7) ==
          status{});
  return {name, std::move(words), [=](std::span<std::byte const> state) {
            return check_state(plan, state);
          }};
}

std::vector<preset_state> all_states()
{
  std::vector<preset_state> all;
#define TERSUM_ADD(name) all.push_back(state_of(#name, presets::name))
  TERSUM_SUMMED_PRESETS(TERSUM_ADD, TERSUM_ADD);
  TERSUM_CHOSEN_PRESETS(TERSUM_ADD, TERSUM_ADD);
  TERSUM_LOW_RANK_PRESETS(TERSUM_ADD, TERSUM_ADD);
  TERSUM_TWO_SHOT_PRESETS(TERSUM_ADD, TERSUM_ADD);
  TERSUM_GATHERED_PRESETS(TERSUM_ADD, TERSUM_ADD);
  TERSUM_SHARDS_PRESETS(TERSUM_ADD, TERSUM_ADD);
  TERSUM_OLDER_PRESETS(TERSUM_ADD, TERSUM_ADD);
  TERSUM_BASELINE_PRESETS(TERSUM_ADD, TERSUM_ADD);
  TERSUM_THC_PRESETS(TERSUM_ADD, TERSUM_ADD);
  return all;
#undef TERSUM_ADD
}

}  // namespace

TEST_CASE("[check_state] a preset's state is accepted by that preset and by no other")
{
  std::vector<preset_state> const all = all_states();
  for (preset_state const& made : all) {
    std::string accepted;
    for (preset_state const& other : all) {
      // As many bytes as any plan may ask for: what refuses a state must not be its size.
      if (other.check(std::as_bytes(std::span{made.words})).ok()) { accepted += other.name + ' '; }
    }
    CHECK(accepted == made.name + ' ');
  }
}

TEST_CASE("[check_state] every preset's state is tried")
{
  std::set<std::string> tried;
  for (preset_state const& made : all_states()) { tried.insert(made.name); }
  for (std::string const& name : tests::preset_names()) {
    CAPTURE(name);
    CHECK(tried.contains(name));
  }
}
