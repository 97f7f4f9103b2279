// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel bodies of codes of factors against the CPU executor.

#include "support/emulated_executor.hpp"
#include "support/exchange_fixture.hpp"
#include "support/odd_matrices.hpp"

#include <tersum/lowrank/quantized_low_rank_codec.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/two_shot_codec.hpp>

using namespace tersum;

namespace {

template <feedback Feedback>
using codes   = codec<fixed_chunks<128>,
                    partial_hadamard<128>,
                    rms_range<tracked_correlation>,
                    stochastic_quantizer<8>,
                    saturating_sum<8>,
                    Feedback>;
using factors = low_rank_codec<low_rank<3>>;
using turns   = low_rank_codec<low_rank<3>, float, low_rank_schedule::alternating>;
// Chunks that owners share out, of which the last is not whole.
using shots = two_shot_codec<fixed_chunks<256>, partial_hadamard<256>, lloyd_max<8>, sent_values>;

// Gradients and states of two ranks after each step, in the second of which one is not finite.
template <class Codec, class Element, class Executor>
tests::exchange_trace record(Executor const& exec)
{
  Codec of_factors{};
  if constexpr (requires { of_factors.inner.range; }) { of_factors.inner.range.clip = 3.6f; }
  tests::exchange_case<Codec, Element> const c{
    .codec = of_factors, .gradient = tests::odd_matrices().gradient(), .non_finite_step = 1};
  tests::exchange_ranks<tests::host_buffer, Codec, Element> ranks{c, std::byte{0x5a}};
  std::vector<loopback_rank<Codec, Element>> all;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    all.push_back(ranks[rank]);
    tests::require_ok(initialize(exec, all[rank].plan, all[rank].state, c.seed));
  }
  tests::exchange_trace out;
  for (int step = 0; step < c.steps; ++step) {
    ranks.write_gradients(step);
    tests::require_ok(
      loopback_all_reduce_mean(exec, std::span<loopback_rank<Codec, Element> const>{all}));
    tests::record_results<Element>(out, step, ranks.memory());
  }
  return out;
}

template <class Codec, class Element = float>
void compare()
{
  auto const want =
    record<Codec, Element>(cpu_executor{.threads = 1, .instructions = instruction_set::baseline});
  for (emulator::thread_order const order : emulator::thread_orders) {
    CAPTURE(order);
    CHECK(tests::difference(record<Codec, Element>(tests::emulated_executor{order}), want) == "");
  }
}

}  // namespace

TEST_CASE("[kernels] codes of low-rank factors equal the CPU executor")
{
  SUBCASE("the mean is fed back")
  {
    compare<quantized_low_rank_codec<factors, codes<no_feedback>>>();
  }
  SUBCASE("what was sent is") { compare<quantized_low_rank_codec<factors, codes<sent_values>>>(); }
  SUBCASE("in turns, of bfloat16")
  {
    compare<quantized_low_rank_codec<turns, codes<sent_values>>, bfloat16>();
  }
  SUBCASE("what was sent is, in a metric")
  {
    using in_units =
      low_rank_codec<low_rank<3>, float, low_rank_schedule::paired, error_feedback, kept_diagonal>;
    compare<quantized_low_rank_codec<in_units, codes<sent_values>>>();
  }
  SUBCASE("in two shots") { compare<quantized_low_rank_codec<factors, shots>>(); }
}
