// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies of per-hop codecs give the bytes of the CPU.

#include "support/compare_kernels.hpp"

#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/baseline/presets.hpp>
#include <tersum/presets.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <int Size, int Bits, class Feedback = no_feedback>
using hop = per_hop_codec<fixed_chunks<Size>, partial_hadamard<Size>, lloyd_max<Bits>, Feedback>;

TEST_CASE("[kernels] codes that every hop decodes, adds and encodes")
{
  SUBCASE("1024, 4 bits")
  {
    compare_sizes<float>(presets::per_hop_4);
    compare_orders<float>(presets::per_hop_4, 3, true);
  }
  SUBCASE("1024, 3 bits") { compare_orders<float>(presets::per_hop_3, 3, true); }
  SUBCASE("1024, 2 bits") { compare_orders<float>(presets::per_hop_2, 3, true); }
  SUBCASE("256, 3 bits, with feedback")
  {
    compare_orders<half>(hop<256, 3, error_feedback>{}, 3, true);
    compare_buckets<half>(hop<256, 3, error_feedback>{});
  }
  SUBCASE("2048, 6 bits") { compare_orders<bfloat16>(hop<2048, 6>{}); }
}

}  // namespace
