// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What pages of the documentation are run with: memory of a plan, gradients, and what went wrong.

#pragma once

#include <tersum/tersum.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

namespace pages {

inline std::atomic<int> faults = 0;

inline void check(bool right, char const* what)
{
  if (!right) { std::printf("%s: no\n", what), ++faults; }
}

inline std::vector<float> waves(std::size_t count, float pitch)
{
  std::vector<float> made(count);
  for (std::size_t i = 0; i < count; ++i) { made[i] = std::sin(pitch * static_cast<float>(i)); }
  return made;
}

//! |a - b|^2 / |b|^2
inline double error_of(std::span<float const> a, std::span<float const> b)
{
  double error = 0, square = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    double const off = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    error += off * off;
    square += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return error / square;
}

inline std::span<std::byte> make_bytes(std::vector<tersum::word4>& memory, std::size_t bytes)
{
  memory.assign(bytes / sizeof(tersum::word4) + 1, {});
  return std::as_writable_bytes(std::span{memory});
}

//! The memory of one rank.
template <class Codec>
struct one_rank {
  tersum::plan<Codec> plan;
  std::vector<tersum::word4> kept, work;
  std::span<std::byte> state, workspace;

  explicit one_rank(tersum::plan<Codec> const& made, std::uint64_t seed = 7)
    : plan(made), state(make_bytes(kept, plan.state_bytes())),
      workspace(make_bytes(work, plan.workspace_bytes()))
  {
    check(initialize(tersum::cpu_executor{.threads = 1}, plan, state, seed).ok(), "initialize");
  }
  one_rank(one_rank const&) = delete;

  //! An exchange of a world of one rank, whose collective has nothing to do.
  std::vector<float> mean_of(std::vector<float> gradient)
  {
    auto const s = all_reduce_mean(
      tersum::cpu_executor{.threads = 1}, plan, gradient, state, workspace, [](auto const& round) {
        if constexpr (requires { round.sent; }) {
          std::copy_n(round.sent, round.count, round.received);
        }
      });
    check(s.ok(), "all_reduce_mean");
    return gradient;
  }
};

}  // namespace pages
