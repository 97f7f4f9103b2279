// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals drain where 16-bit elements travel, which end long before floats do. All presets with feedback are held to the
//! same law beside their golden digests.

#include "support/check_draining.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

namespace {

template <class Wire>
constexpr low_rank_codec<low_rank<1>, Wire> factors{};

TEST_CASE("[feedback] residuals beyond the largest half drain")
{
  tests::check_draining<float>(presets::topkc_b2_ef, 1e5f, 1.9e5f);
  tests::check_draining<float>(presets::topkc_b2_ef, 1e5f, 1.9e5f, true);
  tests::check_draining<float>(
    cast_codec<tersum::half, random_chunks<64>, error_feedback>{.chunker = {.bits = 2}},
    1e5f,
    1.9e5f,
    true);
  tests::check_draining<float>(presets::topk_b2_ef, 1e5f, 1.9e5f, true);
}

TEST_CASE("[feedback] residuals of halves drain, whose sums are beyond the largest half")
{
  tests::check_draining<half>(presets::topkc_b2_ef, 4e4f, 5.7e4f, true, 3);
}

TEST_CASE("[feedback] residuals of factors in half drain, and such factors have sums")
{
  tests::check_draining<float>(factors<half>, 3e3f, 5.7e3f, true, 40);
  tests::check_draining<float>(factors<half>, 3e3f, 5.7e3f, false, 40);
}

TEST_CASE("[feedback] what cannot be sent leaves the residual as it was")
{
  tests::check_draining<float>(presets::topkc_b2_ef, 1e6f, 1e7f, true, 3);
  tests::check_draining<float>(
    cast_codec<tersum::half, random_chunks<64>, error_feedback>{.chunker = {.bits = 2}},
    1e6f,
    1e30f,
    true,
    3);
}

TEST_CASE("[feedback] residuals of factors drain after gradients whose products overflow")
{
  tests::check_draining<float>(presets::powersgd_r4, 2e37f, 4e37f, false, 40);
  tests::check_draining<float>(presets::alternating_iteration<1>{}, 7e35f, 7e36f, true, 10);
  tests::check_draining<float>(presets::alternating_iteration<1>{}, 1e37f, 1e38f, false, 1);
}

using top_bfloat16s = cast_codec<bfloat16, random_chunks<64>, error_feedback>;

TEST_CASE("[feedback] residuals near the largest bfloat16 drain")
{
  tests::check_draining<float>(top_bfloat16s{.chunker = {.bits = 2}}, 1e38f, 3.4e38f, false, 3);
}

}  // namespace
