// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A flagged step leaves every residual as it was, also by a bypassing tensor alone, on the CPU executor and in kernel bodies.

#include "support/emulated_executor.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/presets.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

constexpr std::size_t coordinates = 96 * 64 + 7;
constexpr tensor bucket_of_two[]  = {{"matrix", 96, 64, 0}, {"bias", 1, 7, 96 * 64}};
constexpr layout gradient_of_two{
  .coordinates = coordinates, .tensors = bucket_of_two, .bypass_vectors = true};
constexpr int ranks = 2;

template <class Codec>
class exchange {
 public:
  explicit exchange(Codec const& codec)
  {
    for (int k = 0; k < ranks; ++k) {
      plans_.push_back(codec.plan(gradient_of_two, {.size = ranks, .rank = k}));
      states_.emplace_back(plans_[0].state_bytes() / sizeof(word4) + 1);
      workspaces_.emplace_back(plans_[0].workspace_bytes() / sizeof(word4) + 1);
    }
  }

  template <class Executor>
  void initialize(Executor const& exec)
  {
    for (int k = 0; k < ranks; ++k) {
      REQUIRE(tersum::initialize(exec, plans_[at(k)], state(k), 3) == status{});
    }
  }

  //! One step: what it decoded on rank 0.
  template <class Executor>
  std::vector<float> step(Executor const& exec, std::vector<std::vector<float>> values)
  {
    std::vector<loopback_rank<Codec, float>> all;
    for (int k = 0; k < ranks; ++k) {
      all.push_back({plans_[at(k)],
                     values[at(k)],
                     state(k),
                     std::as_writable_bytes(std::span{workspaces_[at(k)]})});
    }
    std::span<loopback_rank<Codec, float> const> const spans{all};
    REQUIRE(loopback_all_reduce_mean(exec, spans) == status{});
    return values[0];
  }

  [[nodiscard]] bool flagged(int rank)
  {
    return reinterpret_cast<state_header const*>(state(rank).data())->last_was_non_finite();
  }

  //! All that feedback keeps, the owner's part too.
  [[nodiscard]] std::vector<float> residuals()
  {
    std::vector<float> out;
    for (int k = 0; k < ranks; ++k) {
      plan<Codec> const& p = plans_[at(k)];
      std::size_t begin    = p.offset("residual");
      if constexpr (scattering<Codec>) { begin = p.offset("owner_residual"); }
      std::size_t const end   = p.offset("residual") + coordinates * sizeof(float);
      auto const* const first = reinterpret_cast<float const*>(state(k).data() + begin);
      out.insert(out.end(), first, first + (end - begin) / sizeof(float));
    }
    return out;
  }

 private:
  [[nodiscard]] static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  [[nodiscard]] std::span<std::byte> state(int rank)
  {
    return std::as_writable_bytes(std::span{states_[at(rank)]});
  }

  std::vector<plan<Codec>> plans_;
  std::vector<std::vector<word4>> states_, workspaces_;
};

template <class Executor, class Codec>
void check_steps(Executor const& exec, Codec const& codec)
{
  auto const clean = normal_gradients(ranks, coordinates, 7);
  // A NaN of one rank, and finite values of both whose sum is beyond float32.
  auto with_nan = clean, overflowing = clean;
  with_nan[1][coordinates - 3] = std::numeric_limits<float>::quiet_NaN();
  for (auto& values : overflowing) { values[coordinates - 3] = 3e38f; }

  exchange<Codec> run{codec};
  run.initialize(exec);
  run.step(exec, clean);
  auto const before = run.residuals();
  REQUIRE(std::any_of(before.begin(), before.end(), [](float v) { return v != 0; }));
  for (auto const& bad : {with_nan, overflowing}) {
    auto const mean = run.step(exec, bad);
    CHECK_FALSE(std::isfinite(mean[coordinates - 3]));
    CHECK(std::isfinite(mean[0]));
    for (int k = 0; k < ranks; ++k) { CHECK(run.flagged(k)); }
    CHECK(run.residuals() == before);
  }
  run.step(exec, clean);
  CHECK_FALSE(run.flagged(0));
  CHECK(run.residuals() != before);
}

template <class Codec>
void check(Codec const& codec)
{
  SUBCASE("on the CPU") { check_steps(cpu_executor{}, codec); }
  SUBCASE("in the kernel bodies") { check_steps(emulated_executor{}, codec); }
}

TEST_CASE("[kernels] where only a tensor that bypasses is not finite residuals stay as they were")
{
  SUBCASE("sums of codes") { check(presets::rotated_sat4_ef); }
  SUBCASE("chosen chunks") { check(presets::topkc_b2_ef); }
  SUBCASE("two shots") { check(presets::two_shot_4_ef); }
}

}  // namespace
