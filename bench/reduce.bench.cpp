// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Payload + payload, as a hop of an all-reduce does it. The reference copies one payload.

#include "support/cpu_bench.hpp"

namespace {

using namespace tersum_bench;

template <class Codec>
void run_reduce(benchmark::State& state,
                Codec const& codec,
                tersum::cpu_executor const& exec,
                std::uint64_t n)
{
  using op                   = typename Codec::payload_op;
  using element              = typename op::element;
  auto const plan            = codec.plan(tersum::layout{n}, tersum::world{});
  std::size_t const size     = plan.payload_bytes();
  std::size_t const elements = size / sizeof(element);
  std::size_t const turns    = turns_for(size);
  struct memory {
    std::span<element> a, b, to;
  };
  arena room{turns * 3 * arena::rounded(size)};
  if (!room.ok()) { return state.SkipWithError("not enough memory"); }
  std::vector<memory> pairs;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    memory const m{
      room.take<element>(elements), room.take<element>(elements), room.take<element>(elements)};
    // Ordinary numbers and codes in every format that is summed here.
    std::memset(m.a.data(), 0x11, size);
    std::memset(m.b.data(), 0x31, size);
    pairs.push_back(m);
  }
  tersum::status failure{};
  auto const require = [&](tersum::status const& s) {
    if (!s.ok()) { failure = s; }
  };
  // Where each chunk has a width of its own, a choice says where the payload changes it.
  op sum{};
  std::vector<std::byte> rank_state, workspace;
  if constexpr (Codec::several_bits) {
    std::vector<float> gradient(n);
    fill_gradient(std::span{gradient});
    rank_state.resize(plan.state_bytes());
    workspace.resize(plan.workspace_bytes());
    require(initialize(exec, plan, rank_state, 1));
    require(encode(exec, plan, gradient, rank_state, workspace));
    require(advance(exec, plan, gradient, rank_state, workspace));
    sum = payload_wire(plan, workspace).op;
  }
  auto const run = [&](std::size_t turn) {
    memory const& m = pairs[turn];
    require(exec.reduce(sum, m.to.data(), m.a.data(), m.b.data(), elements));
  };
  if (!writes_all(std::as_writable_bytes(pairs[0].to), {}, [&] { run(0); })) {
    return state.SkipWithError("some of the output was not written");
  }
  best_times const best = alternate(state, turns, run, [&](std::size_t turn) {
    copy_on_threads(
      exec.threads, std::as_writable_bytes(pairs[turn].to), std::as_bytes(pairs[turn].a));
  });
  if (!failure.ok()) { return state.SkipWithError(std::string{failure.message}.c_str()); }
  auto const payload = static_cast<double>(size);
  set_counters(
    state, n, plan.bits_per_coordinate(), 3 * payload, payload, best.work_ns, best.copy_ns);
}

[[maybe_unused]] bool const registered = [] {
  name_compiler();
  auto const add = [](std::string_view preset, auto const& codec) {
    for_each_cpu_setting(
      [&](tersum::cpu_executor const& exec, std::string_view executor, std::uint64_t n) {
        std::string const name = result_name("reduce", preset, "float", executor, n, exec.threads);
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          run_reduce(state, codec, exec, n);
        })->Unit(benchmark::kMillisecond);
      });
  };
  add("fp32", tersum::presets::fp32);
  for_each_preset([&](std::string_view preset, auto const& codec) {
    // Those with feedback and the literal ones send the same words as others here.
    if (preset == "thc_sat4" || preset == "rotated_sat4_ef") { return; }
    add(preset, codec);
  });
  return true;
}();

}  // namespace
