// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codec of summed shards gives every rank, to the bit, what an all-reduce gives of its shard, with tensors that end there.

#include "support/bad_input.hpp"
#include "support/exchange_run.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/feedback/kept_by.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/tersum.hpp>

#include <cstddef>
#include <cstring>
#include <vector>

using namespace tersum;
using tests::boundaries;
using tests::mentions;

namespace {

template <class Codec, class Element = float, class ShardElement = Element>
using run_of = tests::exchange_run<tests::host_buffer, Codec, Element, ShardElement>;

//! The same for `all_reduce_mean`.
template <class Ch, class R, class Co, class F, class M>
codec<Ch, R, Co, in_wire, F, M> whole_of(codec<Ch, R, Co, shard, F, M> const& of)
{
  return {of.chunker, of.rotator, of.feedback, of.metric, of.coder};
}

template <int Lanes,
          class Headroom,
          class Feedback  = no_feedback,
          class Quantizer = stochastic_quantizer<Lanes>>
using saturating = codec<fixed_chunks<256>,
                         partial_hadamard<256>,
                         summed_codes<rms_range<Headroom>, Quantizer, saturating_sum<Lanes>>,
                         shard,
                         Feedback>;

template <class Element = float, class Codec>
void equals_all_reduce(Codec const& codec, std::size_t d, boundaries const& cuts, int steps = 3)
{
  int const world = static_cast<int>(cuts.size()) - 1;
  CAPTURE(d);
  CAPTURE(world);
  run_of<Codec, Element> run{cpu_executor{},
                             {.codec = codec, .gradient = {d}, .world = world, .cuts = cuts}};
  // An all-reduce of a layout with one tensor for each shard.
  std::vector<tensor> tensors;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    if (cuts[k] < cuts[k + 1]) {
      tensors.push_back({.rows = cuts[k + 1] - cuts[k], .columns = 1, .offset = cuts[k]});
    }
  }
  layout const of_shards{.coordinates = d, .tensors = tensors, .bypass_vectors = false};
  tests::loopback_run<decltype(whole_of(codec)), Element> whole{
    whole_of(codec), of_shards, world, tests::exchange_seed};
  if constexpr (in_metric<Codec>) {
    run.write_scales();
    for (int rank = 0; rank < world; ++rank) {
      tests::write_scales(metric_scales(whole.plan(rank), whole.state(rank)));
    }
  }
  CHECK(run[0].plan.payload_bytes() == whole.plan().payload_bytes());
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<Element>> in;
    for (int rank = 0; rank < world; ++rank) {
      // Ranks agree in a part, so that the head-room has something to follow.
      auto const own = tests::normal_gradients(world + 1, d, static_cast<unsigned>(17 + step));
      auto& values   = in.emplace_back();
      for (std::size_t i = 0; i < d; ++i) {
        float const shared = i % 3 == 0 ? own[static_cast<std::size_t>(world)][i] : 0.0f;
        values.push_back(from_float<Element>(shared + own[static_cast<std::size_t>(rank)][i]));
      }
    }
    auto const got   = run.exchange(cpu_executor{}, in);
    auto const want  = whole.exchange(in, reduction_order::direct)[0];
    std::size_t same = 0, begin = 0;
    for (auto const& shard : got) {
      REQUIRE(begin + shard.size() <= d);
      bool const alike =
        shard.empty() ||
        std::memcmp(shard.data(), want.data() + begin, shard.size() * sizeof(Element)) == 0;
      same += alike ? shard.size() : 0;
      begin += shard.size();
    }
    CHECK(begin == d);
    CHECK(same == d);
  }
}

}  // namespace

TEST_CASE("[summed shards] a shard has the bits of an all-reduce of tensors that end with shards")
{
  using tracked     = saturating<4, tracked_correlation>;
  constexpr auto at = [](std::size_t d, int world) {
    boundaries cuts;
    for (int k = 0; k <= world; ++k) {
      cuts.push_back(d * static_cast<std::size_t>(k) / static_cast<std::size_t>(world));
    }
    return cuts;
  };
  for (std::size_t const d : {0u, 255u, 256u, 257u, 1009u, 5000u}) {
    for (int const world : {1, 2, 5}) { equals_all_reduce(tracked{}, d, at(d, world)); }
  }
  boundaries const uneven{0, 0, 10, 300, 300, 301, 1000};
  equals_all_reduce(tracked{}, 1000, uneven);
  equals_all_reduce(saturating<8, tracked_correlation, error_feedback>{}, 1000, uneven);
  equals_all_reduce(
    saturating<4, tracked_correlation, kept_in<bfloat16>, nearest_quantizer<4>>{}, 1000, uneven);
  equals_all_reduce(saturating<2, fixed_headroom>{}, 1000, uneven);
  equals_all_reduce<half>(tracked{}, 1000, uneven);
  equals_all_reduce<bfloat16>(tracked{}, 1000, {0, 1000, 1000, 1000});
  equals_all_reduce(presets::summed_shards_sat4, 9001, {0, 500, 501, 9001});
  equals_all_reduce(
    presets::saturating_shards<nearest_quantizer<4>, error_feedback>{
      .coder = {.range = {.clip = 1.9f}}},
    9001,
    {0, 500, 501, 9001});
  equals_all_reduce(
    codec<fixed_chunks<1024>,
          partial_hadamard<1024>,
          summed_codes<rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>,
          shard>{.coder = {.range = {.clip = 3.0f}}},
    9001,
    {0, 500, 501, 9001});
  using unrotated =
    codec<fixed_chunks<128>,
          no_rotation,
          summed_codes<absmax_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 16>>,
          shard>;
  equals_all_reduce(unrotated{}, 1000, uneven);
  using in_metric =
    codec<fixed_chunks<256>,
          partial_hadamard<256>,
          summed_codes<rms_range<tracked_correlation>, stochastic_quantizer<8>, saturating_sum<8>>,
          shard,
          error_feedback,
          given_diagonal>;
  equals_all_reduce(in_metric{}, 1000, uneven);
}

TEST_CASE("[summed shards] without boundaries shards are equal parts")
{
  using codec   = saturating<8, tracked_correlation>;
  auto const in = tests::normal_gradients(3, 1001, 17);
  run_of<codec> given{cpu_executor{},
                      {.gradient = {1001}, .world = 3, .cuts = {0, 333, 667, 1001}}};
  run_of<codec> equal{cpu_executor{}, {.gradient = {1001}, .world = 3}};
  auto const want = given.exchange(cpu_executor{}, in);
  auto const got  = equal.exchange(cpu_executor{}, in);
  CHECK(got == want);
}

TEST_CASE("[summed shards] the plan says what travels, and names a wrong argument")
{
  // Forty chunks of 512 bytes; a norm for each, and a ratio for each piece.
  auto const plan = presets::summed_shards_sat4.plan(layout{40960}, {.size = 4, .rank = 1});
  CHECK(plan.payload_bytes() == 40 * 512);
  CHECK(plan.agreed_bytes() == 4 * (40 + 4));
  CHECK(plan.owned_chunks() == 10);
  CHECK(plan.part_word(1) == 10 * 128);
  boundaries const wrong{0, 3000};
  CHECK(
    mentions(presets::summed_shards_sat4.plan(layout{3000}, {.size = 2, .rank = 0}, wrong).check(),
             "boundaries"));
  auto const crowd =
    codec<fixed_chunks<1024>,
          partial_hadamard<1024>,
          summed_codes<rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>,
          shard>{.coder = {.range = {.clip = 3.0f}}}
      .plan(layout{3000}, {.size = 19, .rank = 0});
  CHECK(crowd.check().code == error_code::world_too_large);
}
