// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Low-rank exchanges on a device equal those of the CPU executor byte for byte: more ranks, and more codes of factors.

#include "support/compare_low_rank.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[cuda_executor] more low-rank exchanges equal the CPU executor")
{
  SUBCASE("powersgd_r1") { compare_matrices<float>(presets::powersgd_r1); }
  SUBCASE("powersgd_r16") { compare_matrices<float>(presets::powersgd_r16); }
}
