// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel bodies of codes of factors against the CPU executor.

#include "support/emulated_executor.hpp"
#include "support/exchange_fixture.hpp"
#include "support/odd_matrices.hpp"

#include <tersum/lowrank/quantized_low_rank_codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

using namespace tersum;

namespace {

using codes   = codec<fixed_chunks<128>,
                    partial_hadamard<128>,
                    rms_range<tracked_correlation>,
                    stochastic_quantizer<8>,
                    saturating_sum<8>>;
using factors = low_rank_codec<low_rank<3>>;

// Gradients and states of two ranks after each step.
template <class Executor>
tests::byte_string record(Executor const& exec)
{
  using memory =
    tests::rank_memory<tests::host_buffer, quantized_low_rank_codec<factors, codes>, float>;
  tests::exchange_case<quantized_low_rank_codec<factors, codes>, float> const c{
    .codec = {.inner = {.range = {.spread = 3.6f}}}, .gradient = tests::odd_matrices().gradient()};
  tests::byte_string out;
  std::deque<memory> ranks;
  for (int rank = 0; rank < c.world; ++rank) {
    memory const& mine = ranks.emplace_back(c, rank, std::byte{0x5a});
    REQUIRE(initialize(exec, mine.plan, mine.state.contents(), c.seed) == status{});
  }
  for (int step = 0; step < c.steps; ++step) {
    std::vector<loopback_rank<quantized_low_rank_codec<factors, codes>, float>> all;
    for (memory& mine : ranks) {
      auto const rank = static_cast<int>(all.size());
      auto const gradient =
        tests::make_gradient<float>(c.gradient.coordinates, rank, step, step == 1);
      mine.gradient.write(std::as_bytes(std::span{gradient}));
      all.push_back(mine.spans());
    }
    REQUIRE(loopback_all_reduce_mean(
              exec,
              std::span<loopback_rank<quantized_low_rank_codec<factors, codes>, float> const>{
                all}) == status{});
    for (memory const& mine : ranks) {
      auto const mean =
        tests::with_one_nan<float>(mine.gradient.read(0, c.gradient.coordinates * sizeof(float)));
      auto const state = mine.state.read(0, mine.plan.state_bytes());
      out.insert(out.end(), mean.begin(), mean.end());
      out.insert(out.end(), state.begin(), state.end());
    }
  }
  return out;
}

}  // namespace

TEST_CASE("[kernels] codes of low-rank factors equal the CPU executor")
{
  auto const want = record(cpu_executor{.threads = 1, .instructions = instruction_set::baseline});
  for (emulator::thread_order const order : emulator::thread_orders) {
    CAPTURE(order);
    CHECK(record(tests::emulated_executor{order}) == want);
  }
}
