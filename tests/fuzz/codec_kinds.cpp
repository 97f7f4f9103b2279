// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is tried besides codecs.cpp where TERSUM_FUZZ_CODECS is `kinds`: the other kinds of codecs.

#include "ranks_of.hpp"

#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace tersum::tests {

TERSUM_TRY(bf16, float);
TERSUM_TRY(thc_wide4, float);
TERSUM_TRY(two_shot_1_ef, float);
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

TERSUM_TRY(gathered_2, half);
TERSUM_TRY(metric_2, float);
TERSUM_TRY(sharded_4, bfloat16);
TERSUM_TRY(topkc_sat4, float);
TERSUM_TRY(allocated_sat_4_ef, float);

namespace {

constexpr presets::gathered<2, error_feedback> gathered_with_feedback{};
constexpr presets::sharded<2, error_feedback> sharded_with_feedback{};
constexpr presets::values<4, difference_feedback> differences{};

listed_codec const try_gathered_with_feedback{
  try_codec<gathered_with_feedback, float>("gathered_with_feedback")};
listed_codec const try_sharded_with_feedback{
  try_codec<sharded_with_feedback, float>("sharded_with_feedback")};
listed_codec const try_differences{try_codec<differences, float>("differences")};

}  // namespace

}  // namespace tersum::tests
