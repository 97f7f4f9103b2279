// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel bodies of the presets with feedback equal the CPU executor bit for bit, residual and all.

#include "support/compare_kernels.hpp"

#include <tersum/presets.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[kernels] rotated_sat2_ef equals the CPU executor")
{
  compare_preset(presets::rotated_sat2_ef);
}

TEST_CASE("[kernels] rotated_sat4_ef equals the CPU executor")
{
  compare_preset(presets::rotated_sat4_ef);
  compare_offsets<float>(presets::rotated_sat4_ef);
}

TEST_CASE("[kernels] rotated codes of 8 bits with feedback equal the CPU executor")
{
  compare_preset(presets::tracked_saturating<nearest_quantizer<8>, error_feedback>{
    .coder = {.range = {.clip = 3.6f}}});
}

}  // namespace
