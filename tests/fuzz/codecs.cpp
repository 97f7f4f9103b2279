// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One codec of each kind: what is always tried.

#include "ranks_of.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace tersum::tests {

std::vector<tried_codec> tried_codecs() { return listed_codec::all(); }

TERSUM_TRY(fp16, float);
TERSUM_TRY(topkc_b2_ef, float);
TERSUM_TRY(topk_b2_ef, float);
TERSUM_TRY(rotated_sat4_ef, float);

namespace {

constexpr presets::allocated_two_shot<error_feedback> allocated_with_feedback{
  .chunker = {.bits = 2}};
constexpr presets::values<4, error_feedback> values_with_feedback{};

listed_codec const try_allocated_with_feedback{
  try_codec<allocated_with_feedback, float>("allocated_with_feedback")};
listed_codec const try_values_with_feedback{
  try_codec<values_with_feedback, float>("values_with_feedback")};

}  // namespace

}  // namespace tersum::tests
