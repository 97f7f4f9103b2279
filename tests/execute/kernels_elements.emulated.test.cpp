// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradients of half and bfloat16: the kernel bodies equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class Element, class Codec>
void compare_element(Codec const& codec)
{
  compare_sizes<Element>(codec);
  compare_orders<Element>(codec, 2, true);
}

TEST_CASE_TEMPLATE("[kernels] gradients of 16 bits", Element, half, bfloat16)
{
  SUBCASE("rotated_sat4") { compare_element<Element>(presets::rotated_sat4); }
  SUBCASE("rotated_sat4_ef") { compare_element<Element>(presets::rotated_sat4_ef); }
  SUBCASE("thc_wide4_partial") { compare_element<Element>(presets::thc_wide4_partial); }
  SUBCASE("thc_wide4_unrotated") { compare_element<Element>(presets::thc_wide4_unrotated); }
}

}  // namespace
