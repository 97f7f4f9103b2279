// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies send and keep what the CPU does where gradients and residuals are beyond 16-bit elements.

#include "support/emulated_executor.hpp"
#include "support/loopback_run.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

constexpr std::uint64_t rows = 31, columns = 45, size = rows * columns;
constexpr tensor matrix[] = {{"matrix", rows, columns, 0}};

struct results {
  std::vector<std::vector<float>> means, residuals;
  std::vector<bool> flags;  // of rank 0
};

// Two ranks: a step with magnitudes around the largest half and far beyond it, one with an Inf (of matrices 2^40), and steps of zeros.
template <class Executor, class Codec>
results exchange(Codec const& codec, int quiet)
{
  layout of{.coordinates = size};
  if constexpr (is_low_rank<Codec>) { of.tensors = matrix; }
  loopback_run<Codec, float, Executor> run{codec, of, 2, 3};
  results out;
  for (int step = 0; step < 2 + quiet; ++step) {
    std::vector<std::vector<float>> in(2, std::vector<float>(size));
    for (std::size_t rank = 0; rank < 2 && step == 0; ++rank) {
      for (std::uint64_t i = 0; i < size; ++i) {
        float const large =
          i % 97 == 5 ? 2e6f : 1000.0f * static_cast<float>(i % 190) + static_cast<float>(rank);
        float const value = is_low_rank<Codec> ? 5000.0f + static_cast<float>(i % 7) : large;
        in[rank][i]       = i % 2 == 0 ? value : -value;
      }
    }
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (step == 1) { in[1][77] = is_low_rank<Codec> ? 0x1p40f : infinity; }
    for (auto const& mean : run.exchange(in)) { out.means.push_back(mean); }
    out.flags.push_back(run.header().last_was_non_finite());
    for (int rank = 0; rank < 2; ++rank) {
      out.residuals.emplace_back(run.residual(rank).begin(), run.residual(rank).end());
    }
  }
  return out;
}

// A NaN equals a NaN.
bool same(std::vector<std::vector<float>> const& a, std::vector<std::vector<float>> const& b)
{
  for (std::size_t k = 0; k < a.size(); ++k) {
    for (std::size_t i = 0; i < a[k].size(); ++i) {
      bool const both = a[k][i] != a[k][i] && b[k][i] != b[k][i];
      if (!both && std::memcmp(&a[k][i], &b[k][i], sizeof(float)) != 0) { return false; }
    }
  }
  return a.size() == b.size();
}

template <class Codec>
void compare(Codec const& codec)
{
  results const cpu     = exchange<cpu_executor>(codec, 3);
  results const kernels = exchange<emulated_executor>(codec, 3);
  CHECK(same(cpu.means, kernels.means));
  CHECK(same(cpu.residuals, kernels.residuals));
  CHECK(cpu.flags == kernels.flags);
}

TEST_CASE("[feedback] kernels send and keep what the CPU does beyond the largest half")
{
  SUBCASE("chosen chunks")
  {
    compare(presets::top_halves<64, error_feedback>{.chunker = {.bits = 8}});
  }
  SUBCASE("drawn chunks in bfloat16")
  {
    compare(codec<random_chunks<64>, no_rotation, cast<bfloat16>, in_wire, error_feedback>{
      .chunker = {.bits = 8}});
  }
  SUBCASE("factors") { compare(low_rank_codec<low_rank<2>>{}); }
  SUBCASE("coordinates") { compare(top_coordinates_codec<error_feedback>{.chunker = {.bits = 8}}); }
}

TEST_CASE("[feedback] factors in half of kernels have finite sums")
{
  // P of equal rows of 45 times 5000 is beyond the largest half, and so is the sum of two halves of it.
  results const out = exchange<emulated_executor>(low_rank_codec<low_rank<1>, cast<half>>{}, 1);
  CHECK(out.flags == std::vector<bool>{false, true, false});  // 2^40 in the second step
  for (float const kept : out.residuals.back()) { REQUIRE(kept - kept == 0.0f); }
}

}  // namespace
