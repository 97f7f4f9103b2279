// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Buckets of many tensors: the kernel bodies equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/baseline/presets.hpp>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

using tracked_global = codec<fixed_chunks<256>,
                             partial_hadamard<256>,
                             global_range<tracked_correlation>,
                             stochastic_quantizer<4>,
                             saturating_sum<4>>;

using wide = codec<fixed_chunks<2048>,
                   partial_hadamard<2048>,
                   absmax_range<tracked_correlation>,
                   stochastic_quantizer<8>,
                   saturating_sum<8>,
                   error_feedback>;

TEST_CASE("[kernels] tensors of a bucket")
{
  SUBCASE("rotated_sat4") { compare_buckets<float>(presets::rotated_sat4); }
  SUBCASE("rotated_sat2_ef") { compare_buckets<float>(presets::rotated_sat2_ef); }
  SUBCASE("rotated_sat4_ef of bfloat16") { compare_buckets<bfloat16>(presets::rotated_sat4_ef); }
  SUBCASE("thc_wide4_partial of half") { compare_buckets<half>(presets::thc_wide4_partial); }
  SUBCASE("one norm a tensor") { compare_buckets<float>(tracked_global{}); }
  SUBCASE("a chunk a block") { compare_buckets<float>(wide{}); }
}

TEST_CASE("[kernels] more tensors than one launch of initialize takes")
{
  std::vector<bucket::shape> shapes;
  for (unsigned i = 0; i < 70; ++i) { shapes.push_back({1 + i % 5, 9 + i % 7}); }
  bucket const many{shapes};
  compare_kernels<tracked_global, float>({.gradient = many.gradient(), .world = 1, .steps = 1});
}

TEST_CASE("[kernels] buckets in which everything bypasses, or nothing is")
{
  bucket const vectors{{{1, 5}, {300, 1}, {3, 3}}};
  bucket const nothing{{{0, 5}, {7, 0}}};
  for (bucket const* const all : {&vectors, &nothing}) {
    compare_kernels<tracked_global, float>({.gradient = all->gradient(), .world = 3, .steps = 2},
                                           emulator::thread_orders);
  }
}

}  // namespace
