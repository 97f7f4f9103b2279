// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every codec must do with wrong arguments and with values that are not finite.

#pragma once

#include "loopback_run.hpp"
#include "normal_gradients.hpp"

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/wires.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

namespace tersum::tests {

//! Whether a status is about a wrong argument and says which.
[[nodiscard]] inline bool mentions(status const& s, std::string_view word)
{
  return s.code == error_code::invalid_argument && s.message.find(word) != std::string_view::npos;
}

//! @brief A wrong argument is named before anything travels, and no memory is written.
template <class Codec>
void check_wrong_arguments(Codec const& codec, layout const& shape)
{
  cpu_executor const exec;
  auto const plan = codec.plan(shape, {.size = 2, .rank = 1});
  REQUIRE(plan.check() == status{});
  std::size_t const d = shape.coordinates;
  // A word more than is needed, so that what begins late is misaligned and not short.
  std::vector<word4> state(plan.state_bytes() / 16 + 2), workspace(plan.workspace_bytes() / 16 + 2);
  auto const s = std::as_writable_bytes(std::span{state});
  auto const w = std::as_writable_bytes(std::span{workspace});
  std::vector<float> gradient(d + 1, 1.0f);
  std::span<float> const g = std::span{gradient}.first(d);
  REQUIRE(initialize(exec, plan, s, 1) == status{});
  auto const state_before     = state;
  auto const workspace_before = workspace;

  int rounds         = 0;
  auto const outcome = [&](std::span<float> values,
                           std::span<std::byte> kept,
                           std::span<std::byte> scratch,
                           cpu_executor const& on = {}) {
    return all_reduce_mean(on, plan, values, kept, scratch, [&](auto const&) { ++rounds; });
  };
  std::span<std::byte> const null_bytes{static_cast<std::byte*>(nullptr), std::size_t{1} << 30};
  auto* const odd = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(gradient.data()) + 1);

  CHECK(mentions(outcome(g.first(d - 1), s, w), "gradient.size()"));
  CHECK(mentions(outcome(std::span{gradient}, s, w), "gradient.size()"));
  CHECK(mentions(outcome({static_cast<float*>(nullptr), d}, s, w), "gradient is a null"));
  CHECK(mentions(outcome({odd, d}, s, w), "gradient is not aligned"));
  CHECK(mentions(measure(exec, plan, std::span<float>{odd, d}, s, w), "gradient is not aligned"));
  CHECK(mentions(outcome(g, s.first(plan.state_bytes() - 1), w), "state is smaller"));
  CHECK(mentions(outcome(g, s.subspan(4), w), "state is not aligned"));
  CHECK(mentions(outcome(g, null_bytes, w), "state is a null"));
  CHECK(mentions(initialize(exec, plan, null_bytes, 1), "state is a null"));
  CHECK(mentions(outcome(g, s, w.first(plan.workspace_bytes() - 1)), "workspace is smaller"));
  CHECK(mentions(outcome(g, s, w.subspan(8)), "workspace is not aligned"));
  CHECK(mentions(outcome(g, s, null_bytes), "workspace is a null"));
  // All of them in one array, where they overlap by a few bytes, or not.
  std::vector<word4> arena(state.size() + workspace.size() + d / 4 + 2);
  auto const all      = std::as_writable_bytes(std::span{arena});
  auto const in_arena = [&](std::size_t first, std::size_t second, std::size_t third) {
    std::span<float> const values{reinterpret_cast<float*>(all.data() + third), d};
    return outcome(values, all.subspan(first), all.subspan(second), {.threads = 0});
  };
  std::size_t const behind = (plan.state_bytes() + 15) / 16 * 16;
  std::size_t const end    = behind + (plan.workspace_bytes() + 15) / 16 * 16;
  CHECK(mentions(in_arena(0, behind, end), "threads"));
  CHECK(mentions(in_arena(0, behind - 16, end), "state overlaps"));
  CHECK(mentions(in_arena(0, behind, end - 16), "gradient overlaps"));
  std::size_t const within = (d * sizeof(float) - 1) / 16 * 16;
  CHECK(mentions(in_arena(within, within + behind, 0), "gradient overlaps"));
  for (int const threads : {0, 4097}) {
    cpu_executor const other{.threads = threads};
    CHECK(mentions(outcome(g, s, w, other), "threads"));
    // Parts of an exchange may come on an executor of their own.
    CHECK(mentions(encode(other, plan, g, s, w), "threads"));
    if constexpr (scattering<Codec>) {
      CHECK(mentions(recompress(other, plan, g, s, w), "threads"));
    }
    CHECK(mentions(decode(other, plan, g, s, w), "threads"));
  }

  CHECK(rounds == 0);
  CHECK(state == state_before);
  CHECK(workspace == workspace_before);
  CHECK(gradient == std::vector<float>(d + 1, 1.0f));
}

//! @brief A plan of 2^33 coordinates is 4096 times one of 2^21, but for what a payload rounds: less than a tile, or than
//! the chunks of four ranks, which are a hundredth of 2^21 coordinates in 4 bits.
template <class Codec>
void check_large_plan(Codec const& codec)
{
  auto const small = codec.plan(layout{std::uint64_t{1} << 21}, {.size = 4, .rank = 3});
  auto const large = codec.plan(layout{std::uint64_t{1} << 33}, {.size = 4, .rank = 3});
  CHECK(large.check() == status{});
  CHECK(large.chunks() == 4096 * small.chunks());
  CHECK(large.agreed_bytes() == 4096 * small.agreed_bytes());
  double const ratio =
    static_cast<double>(large.payload_bytes()) / static_cast<double>(small.payload_bytes());
  CHECK(ratio / 4096 == doctest::Approx(1).epsilon(.01));
  CHECK(large.workspace_bytes() > large.payload_bytes());
}

//! @brief NaN and both infinities are flagged on every rank, and change nothing but their chunk and no feedback of ranks or owners.
//! Where chunks are chosen the others may have other codes.
template <class Codec>
void check_non_finite(Codec const& codec)
{
  constexpr std::size_t size = Codec::chunk_size, d = 10 * size + 5;
  constexpr int ranks = 3;
  for (float const bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    CAPTURE(bad);
    auto const clean    = normal_gradients(ranks, d, 7);
    auto dirty          = clean;
    dirty[1][size + 17] = bad;
    loopback_run<Codec> run{codec, layout{d}, ranks, 5}, twin{codec, layout{d}, ranks, 5};
    run.exchange(clean);
    twin.exchange(clean);
    auto const kept = [&] {
      std::vector<float> of_all;
      for (int k = 0; k < ranks; ++k) {
        if constexpr (feeds_back<Codec>) {
          auto const of_rank = residuals_of(run.plan(k), run.state(k));
          of_all.insert(of_all.end(), of_rank.begin(), of_rank.end());
        }
      }
      return of_all;
    };
    auto const before = kept();
    auto const got    = run.exchange(dirty);
    auto const want   = twin.exchange(clean);
    for (int k = 0; k < ranks; ++k) {
      CHECK(run.header(k).last_was_non_finite());
      CHECK_FALSE(twin.header(k).last_was_non_finite());
      for (std::size_t i = 0; i < d; ++i) {
        auto const rank     = static_cast<std::size_t>(k);
        bool const poisoned = i / size == 1;
        CAPTURE(i);
        if (poisoned) {
          REQUIRE(std::isnan(got[rank][i]));
        } else {
          REQUIRE((selects<Codec> ? std::isfinite(got[rank][i]) : got[rank][i] == want[rank][i]));
        }
      }
    }
    CHECK(kept() == before);
    for (float const value : run.exchange(clean)[2]) { REQUIRE(std::isfinite(value)); }
    CHECK_FALSE(run.header(2).last_was_non_finite());
  }
}

}  // namespace tersum::tests
