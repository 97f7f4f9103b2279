// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel bodies of the rotated saturating presets with other widths equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/presets.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[kernels] rotated_sat2 equals the CPU executor")
{
  compare_preset(presets::rotated_sat2);
}

TEST_CASE("[kernels] rotated_sat8 equals the CPU executor")
{
  compare_preset(presets::rotated_sat8);
}

}  // namespace
