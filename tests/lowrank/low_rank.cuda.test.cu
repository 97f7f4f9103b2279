// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Low-rank exchanges on a device equal those of the CPU executor byte for byte, also captured in a graph.

#include "support/compare_low_rank.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

namespace low_rank_cuda_test {

using namespace tersum;
using namespace tersum::tests;

inline bucket const& large_matrices()
{
  static bucket const all{
    most_coordinates() > 9000000
      ? std::vector<bucket::shape>{{1024, 1024}, {1, 1024}, {4096, 1024}, {1000, 3000}}
      : std::vector<bucket::shape>{{192, 192}, {1, 192}, {256, 192}, {190, 200}}};
  return all;
}

}  // namespace low_rank_cuda_test

using namespace low_rank_cuda_test;

TEST_CASE("[cuda_executor] low-rank exchanges equal the CPU executor")
{
  constexpr auto alternating = low_rank_schedule::alternating;
  SUBCASE("powersgd_r4") { compare_matrices<float>(presets::powersgd_r4); }
  SUBCASE("acp_r4") { compare_matrices<float>(presets::acp_r4); }
  SUBCASE("rank 3 of bfloat16, Gram-Schmidt, half on the wire")
  {
    compare_matrices<bfloat16>(low_rank_codec<low_rank<3, gram_schmidt>, cast<tersum::half>>{});
  }
  SUBCASE("rank 64 of all matrices, without feedback")
  {
    compare_matrices<tersum::half>(
      low_rank_codec<low_rank<64>, cast<float>, alternating, no_feedback>{
        .low_rank = {.least_saving = 0}});
  }
  SUBCASE("powersgd_r64") { compare_matrices<float>(presets::powersgd_r64); }
  SUBCASE("large matrices, rank 64")
  {
    using codec_type = std::remove_cvref_t<decltype(presets::powersgd_r64)>;
    compare_executors<codec_type, float>(
      {.codec = presets::powersgd_r64, .gradient = large_matrices().gradient(), .steps = 2});
  }
}

TEST_CASE("[cuda_executor] a captured low-rank exchange equals direct calls")
{
  compare_graph(presets::powersgd_r4, odd_matrices().gradient());
  compare_graph(presets::acp_r4, odd_matrices().gradient());
}
