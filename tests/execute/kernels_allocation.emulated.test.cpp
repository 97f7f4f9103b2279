// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks with codes of several widths, or of none: the kernel bodies equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <type_traits>

namespace {

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[kernels] top chunks in saturating codes")
{
  SUBCASE("stochastic") { compare_all<float>(presets::topkc_sat4); }
  SUBCASE("with feedback")
  {
    compare_places<half>(presets::top_saturating<nearest_quantizer<4>, error_feedback>{
      .chunker = {.bits = 2}, .coder = {.range = {.clip = 0}}});
  }
}

TEST_CASE("[kernels] a width for every chunk")
{
  SUBCASE("2 bits") { compare_places<float>(presets::allocated_sat_2); }
  SUBCASE("4 bits with feedback") { compare_all<float>(presets::allocated_sat_4_ef); }
  SUBCASE("energies that count by their fourth root")
  {
    auto codec              = presets::allocated_sat_2;
    codec.chunker.weighting = 0.25f;
    compare_places<bfloat16>(codec);
    compare_offsets<bfloat16>(codec);
  }
  SUBCASE("of tensors with weights")
  {
    compare_kernels<std::remove_cvref_t<decltype(presets::allocated_sat_2)>, bfloat16>(
      {.codec = presets::allocated_sat_2, .gradient = odd_bucket().weighted(), .steps = 2});
  }
}

template <int Size, int... Widths>
using allocated =
  codec<allocated_chunks<Size, Widths...>,
        partial_hadamard<Size>,
        summed_codes<rms_range<tracked_correlation>, stochastic_quantizer<8>, saturating_sum<8>>,
        in_wire>;

TEST_CASE("[kernels] a width for every chunk, of other sizes")
{
  SUBCASE("128, two widths")
  {
    compare_places<float>(allocated<128, 4, 8>{.chunker = {.bits = 5}});
  }
  SUBCASE("2048") { compare_places<float>(allocated<2048, 2, 4, 8>{.chunker = {.bits = 3}}); }
}

}  // namespace
