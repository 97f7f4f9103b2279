// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is tried besides codecs_a.cpp and codecs_b.cpp where TERSUM_FUZZ_ALL_CODECS is on: the rest.

#include "ranks_of.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace tersum::tests {

TERSUM_TRY(topkc_b2_ef, half);
TERSUM_TRY(topkc_b8, float);
TERSUM_TRY(thc_wide4, float);
TERSUM_TRY(two_shot_1_ef, float);
TERSUM_TRY(two_shot_4_ef, half);
TERSUM_TRY(allocated_4, bfloat16);
TERSUM_TRY(blocks_4, float);
TERSUM_TRY(powersgd_r4, float);
TERSUM_TRY(acp_r4, float);

namespace {

constexpr codec<random_chunks<64>, no_rotation, cast<tersum::half>, in_wire, error_feedback>
  random_with_feedback{.chunker = {.bits = 2}};

listed_codec const try_random_with_feedback{
  try_codec<random_with_feedback, float>("random_with_feedback", false)};

}  // namespace

}  // namespace tersum::tests
