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
#define TERSUM_ADD(name) all.push_back(state_of(#name, presets::name));
  // clang-format off
  TERSUM_ADD(fp32) TERSUM_ADD(fp16) TERSUM_ADD(bf16) TERSUM_ADD(rotated_sat2) TERSUM_ADD(rotated_sat4)
  TERSUM_ADD(rotated_sat8) TERSUM_ADD(rotated_sat2_ef) TERSUM_ADD(rotated_sat4_ef)
  TERSUM_ADD(topkc_b05) TERSUM_ADD(topkc_b2) TERSUM_ADD(topkc_b8) TERSUM_ADD(topkc_b05_ef) TERSUM_ADD(topkc_b2_ef)
  TERSUM_ADD(randomkc_b2) TERSUM_ADD(topkc_sat4) TERSUM_ADD(allocated_sat_2) TERSUM_ADD(allocated_sat_4)
  TERSUM_ADD(allocated_sat_4_ef) TERSUM_ADD(powersgd_r1) TERSUM_ADD(powersgd_r4) TERSUM_ADD(powersgd_r16)
  TERSUM_ADD(powersgd_r64) TERSUM_ADD(acp_r4) TERSUM_ADD(two_shot_2) TERSUM_ADD(two_shot_3) TERSUM_ADD(two_shot_4)
  TERSUM_ADD(two_shot_8) TERSUM_ADD(two_shot_1_ef) TERSUM_ADD(two_shot_4_ef) TERSUM_ADD(two_shot_4_8)
  TERSUM_ADD(metric_2) TERSUM_ADD(metric_3) TERSUM_ADD(allocated_2) TERSUM_ADD(allocated_4) TERSUM_ADD(gathered_2)
  TERSUM_ADD(gathered_4) TERSUM_ADD(sharded_4) TERSUM_ADD(summed_shards_sat4) TERSUM_ADD(values_4) TERSUM_ADD(thc_wide4)
  TERSUM_ADD(thc_wide4_partial) TERSUM_ADD(thc_wide4_unrotated) TERSUM_ADD(thc_lookup4) TERSUM_ADD(thc_lookup4_wide)
  TERSUM_ADD(thc_sat2) TERSUM_ADD(thc_sat4) TERSUM_ADD(thc_sat8) TERSUM_ADD(topk_b05) TERSUM_ADD(topk_b2)
  TERSUM_ADD(topk_b8) TERSUM_ADD(topk_b2_ef) TERSUM_ADD(blocks_4) TERSUM_ADD(blocks_8) TERSUM_ADD(mxfp4)
  TERSUM_ADD(mxfp8) TERSUM_ADD(nvfp4) TERSUM_ADD(qsgd_4) TERSUM_ADD(natural_4) TERSUM_ADD(onebit_ef)
  TERSUM_ADD(terngrad) TERSUM_ADD(sign_majority) TERSUM_ADD(randomk_b2) TERSUM_ADD(randomk_b2_ef)
  return all;
  // clang-format on
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
