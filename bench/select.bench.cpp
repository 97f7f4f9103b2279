// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The choice of chunks from their agreed norms, and what finds the same threshold without it: std::nth_element of the
//! norms. The reference copies the norms, on as many threads.

#include "support/cpu_bench.hpp"

#include <tersum/device/select_chunks.hpp>
#include <tersum/presets.hpp>

#include <functional>
#include <random>

namespace {

using namespace tersum_bench;

//! Norms of bfloat16 that are spread over sixteen octaves.
void fill_norms(std::span<tersum::bfloat16> norms)
{
  std::mt19937_64 engine{7};
  std::normal_distribution<float> octave{0.0f, 4.0f};
  for (auto& norm : norms) { norm = tersum::to_bfloat16(std::exp2(octave(engine))); }
}

//! Takes turns on several arrays of norms; `work(turn)` is timed beside a copy of the norms.
template <class Plan, class Work>
void run_on_norms(benchmark::State& state,
                  Plan const& plan,
                  int threads,
                  std::size_t turns,
                  std::span<tersum::bfloat16> norms,
                  std::span<tersum::bfloat16> copy,
                  Work const& work)
{
  std::size_t const chunks = plan.chunks();
  run_times const times    = alternate(state, turns, work, [&](std::size_t turn) {
    copy_on_threads(
      threads, std::as_writable_bytes(copy), std::as_bytes(norms.subspan(turn * chunks, chunks)));
  });
  double const size        = static_cast<double>(chunks * sizeof(tersum::bfloat16));
  // Norms are read, a place of four bytes is written for each.
  set_counters(state, plan, 3 * size, size, times);
}

template <class Codec>
void run_select(benchmark::State& state,
                Codec const& codec,
                tersum::cpu_executor const& exec,
                std::uint64_t n,
                bool ours)
{
  auto const plan          = codec.plan(tersum::layout{n}, tersum::world{});
  std::size_t const chunks = plan.chunks();
  std::size_t const turns  = turns_for(plan.workspace_bytes());
  std::size_t const all    = turns * chunks;
  std::vector<tersum::bfloat16> norms(all), copy(chunks);
  fill_norms(norms);

  if (!ours) {
    auto const rule = plan.selection_rule();
    std::vector<float> values(chunks);
    return run_on_norms(state, plan, exec.threads, turns, norms, copy, [&](std::size_t turn) {
      auto const* const from = norms.data() + turn * chunks;
      for (std::size_t i = 0; i < chunks; ++i) { values[i] = tersum::to_float(from[i]); }
      std::nth_element(values.begin(),
                       values.begin() + static_cast<std::ptrdiff_t>(rule.capacity),
                       values.end(),
                       std::greater<>{});
      benchmark::DoNotOptimize(values.data());
    });
  }

  auto const rule = plan.selection_rule();
  std::vector<std::uint32_t> places(all);
  std::vector<tersum::word4> workspace(tersum::select_chunks_workspace_bytes() /
                                       sizeof(tersum::word4));
  run_on_norms(state, plan, exec.threads, turns, norms, copy, [&](std::size_t turn) {
    require(
      tersum::select_chunks(exec,
                            rule,
                            std::span<tersum::bfloat16 const>{norms}.subspan(turn * chunks, chunks),
                            std::as_writable_bytes(std::span{workspace}),
                            std::span{places}.subspan(turn * chunks, chunks)));
  });
}

template <class Codec>
void add_select(std::string_view operation, std::string_view preset, Codec const& codec, bool ours)
{
  for (std::uint64_t const n : sizes()) {
    for (int const threads : thread_counts(ours ? 2 : 1)) {
      add(result_name(operation, preset, "float", "cpu", n, threads),
          [=](benchmark::State& state) { run_select(state, codec, {threads}, n, ours); });
    }
  }
}

[[maybe_unused]] bool const registered = [] {
  namespace presets = tersum::presets;
  add_select("select", "topkc_b2", presets::topkc_b2, true);
  add_select("nth_element", "topkc_b2", presets::topkc_b2, false);
  add_select("select", "topkc_b05", presets::topkc_b05, true);
  add_select("nth_element", "topkc_b05", presets::topkc_b05, false);
  add_select("select", "allocated_sat_4", presets::allocated_sat_4, true);
  return name_compiler();
}();

}  // namespace
