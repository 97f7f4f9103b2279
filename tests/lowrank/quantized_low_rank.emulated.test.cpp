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

// Gradients and states of two ranks after each step, in the second of which one is not finite.
template <class Executor>
tests::exchange_trace record(Executor const& exec)
{
  using codec_type = quantized_low_rank_codec<factors, codes>;
  tests::exchange_case<codec_type, float> const c{.codec    = {.inner = {.range = {.clip = 3.6f}}},
                                                  .gradient = tests::odd_matrices().gradient(),
                                                  .non_finite_step = 1};
  tests::exchange_ranks<tests::host_buffer, codec_type, float> ranks{c, std::byte{0x5a}};
  std::vector<loopback_rank<codec_type, float>> all;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    all.push_back(ranks[rank]);
    tests::require_ok(initialize(exec, all[rank].plan, all[rank].state, c.seed));
  }
  tests::exchange_trace out;
  for (int step = 0; step < c.steps; ++step) {
    ranks.write_gradients(step);
    tests::require_ok(
      loopback_all_reduce_mean(exec, std::span<loopback_rank<codec_type, float> const>{all}));
    tests::record_results<float>(out, step, ranks.memory());
  }
  return out;
}

}  // namespace

TEST_CASE("[kernels] codes of low-rank factors equal the CPU executor")
{
  auto const want = record(cpu_executor{.threads = 1, .instructions = instruction_set::baseline});
  for (emulator::thread_order const order : emulator::thread_orders) {
    CAPTURE(order);
    CHECK(tests::difference(record(tests::emulated_executor{order}), want) == "");
  }
}
