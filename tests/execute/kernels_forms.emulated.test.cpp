// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of shards, values and gathered codes have the same bytes on all instruction sets, threads and kernel bodies.

#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/feedback/kept_by.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/group_absmax.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class Given, class Got, class Codec>
void compare_shards(Codec const& codec)
{
  for_each_shard_case<Given, Got>(codec, several_chunks<Codec>(), [](auto const& c) {
    std::array const order{next_order()};
    compare_kernels(c, order);
  });
}

template <int Size, int Bits, class Feedback = no_feedback>
using shards =
  codec<fixed_chunks<Size>, partial_hadamard<Size>, scaled_codes<lloyd_max<Bits>>, shard, Feedback>;

TEST_CASE("[kernels] shards")
{
  SUBCASE("1024, 4 bits") { compare_shards<float, float>(presets::sharded_4); }
  SUBCASE("256, 3 bits, with feedback, of bfloat16 in float")
  {
    compare_shards<bfloat16, float>(shards<256, 3, error_feedback>{});
    compare_shards<float, float>(shards<256, 3, kept_in<bfloat16>>{});
  }
  SUBCASE("256, 2 bits, with feedback, in a metric")
  {
    using codec = tests::rotated_codes<256, lloyd_max<2>, shard, error_feedback, given_diagonal>;
    compare_shards<float, bfloat16>(codec{});
  }
  SUBCASE("2048, 1 bit, of float in half") { compare_shards<float, half>(shards<2048, 1>{}); }
  SUBCASE("blocks with scales of their own")
  {
    using quantizer = group_absmax<4, 32, linear_levels, bfloat16_scale>;
    compare_shards<half, half>(
      codec<fixed_chunks<512>, no_rotation, scaled_codes<quantizer>, shard, error_feedback>{});
  }
}

TEST_CASE("[kernels] summed shards")
{
  SUBCASE("1024, 4 bits") { compare_shards<float, float>(presets::summed_shards_sat4); }
  SUBCASE("256, 8 bits with feedback, of bfloat16 in float")
  {
    compare_shards<bfloat16, float>(
      codec<fixed_chunks<256>,
            partial_hadamard<256>,
            summed_codes<rms_range<tracked_correlation>, nearest_quantizer<8>, saturating_sum<8>>,
            shard,
            error_feedback>{});
  }
  SUBCASE("2048, native sums, of float in half")
  {
    compare_shards<float, half>(
      codec<fixed_chunks<2048>,
            partial_hadamard<2048>,
            summed_codes<rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>,
            shard>{});
  }
  SUBCASE("256, in a metric")
  {
    compare_shards<float, float>(
      codec<fixed_chunks<256>,
            partial_hadamard<256>,
            summed_codes<rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>,
            shard,
            no_feedback,
            given_diagonal>{});
  }
}

TEST_CASE("[kernels] shards in elements")
{
  compare_shards<bfloat16, float>(
    codec<fixed_chunks<256>, no_rotation, cast<half>, shard, error_feedback>{});
}

TEST_CASE("[kernels] gathered codes")
{
  SUBCASE("1024, 4 bits") { compare_all<float>(presets::gathered_4); }
  SUBCASE("256, 3 bits, with feedback")
  {
    using codec = tests::rotated_codes<256, lloyd_max<3>, gather, error_feedback>;
    compare_all<half>(codec{});
  }
  SUBCASE("a width for every chunk")
  {
    using codec = codec<allocated_chunks<256, 1, 2, 4>,
                        partial_hadamard<256>,
                        scaled_codes<lloyd_max<4>>,
                        gather>;
    compare_all<bfloat16>(codec{.chunker = {.bits = 2}});
  }
}

template <int Size, int Bits, class Feedback = no_feedback, class Metric = plain_metric>
using values_of = tests::rotated_codes<Size, lloyd_max<Bits>, publish, Feedback, Metric>;

TEST_CASE("[kernels] values")
{
  SUBCASE("1024, 4 bits") { compare_shards<float, float>(presets::values_4); }
  SUBCASE("1024, 4 bits, differences of float in bfloat16")
  {
    compare_shards<float, bfloat16>(presets::values<4, difference_feedback>{});
  }
  SUBCASE("256, 3 bits, with feedback, of bfloat16 in float")
  {
    compare_shards<bfloat16, float>(values_of<256, 3, error_feedback>{});
    compare_shards<float, float>(values_of<256, 3, kept_in<bfloat16>>{});
  }
  SUBCASE("2048, 1 bit, differences of float in half")
  {
    compare_shards<float, half>(values_of<2048, 1, difference_feedback>{});
  }
  SUBCASE("512, 3 bits, with feedback, in a metric")
  {
    compare_shards<float, float>(values_of<512, 3, error_feedback, kept_diagonal>{});
  }
  SUBCASE("1024, 2 bits, differences of float in half, in a metric")
  {
    compare_shards<float, half>(
      values_of<1024, 2, difference_feedback, kept_diagonal_in<bfloat16>>{});
  }
  SUBCASE("halves of bfloat16 in float")
  {
    compare_shards<bfloat16, float>(
      codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>, publish>{});
  }
  SUBCASE("blocks with scales of their own, differences")
  {
    using quantizer = group_absmax<4, 32, linear_levels, bfloat16_scale>;
    compare_shards<half, half>(codec<fixed_chunks<512>,
                                     no_rotation,
                                     scaled_codes<quantizer>,
                                     publish,
                                     difference_feedback>{});
  }
}

}  // namespace
