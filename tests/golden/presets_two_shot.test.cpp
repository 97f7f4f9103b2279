// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two shots, fixed and allocated.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

namespace {

constexpr codec<allocated_chunks<512, 10, 12, 16>,
                partial_hadamard<512>,
                scaled_codes<lloyd_max<8>>,
                two_shot>
  wide_widths{.chunker = {.bits = 11}};

}  // namespace

TEST_CASE("[golden] exchanges in two shots are what they were")
{
  tests::golden_presets golden{"two_shot"};
  TERSUM_TWO_SHOT_PRESETS(TERSUM_DESCRIBE, TERSUM_DESCRIBE_FULLY);
  golden.describe_fully("1 bit up and 3 down", presets::two_way_shot<1, 3>{});
  using widths = codec<allocated_chunks<512, 2, 4, 6, 7, 8, 10, 14>,
                       partial_hadamard<512>,
                       scaled_codes<lloyd_max<8>>,
                       two_shot>;
  golden.describe("widths of up to 14 bits", widths{.chunker = {.bits = 8}});
  golden.describe_fully("widths with feedback",
                        presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}});
  golden.describe("widths of 10, 12 and 16 bits", wide_widths);
  // The budget pays for the norms of five ranks' parts only where they are longer than usual.
  golden.describe("widths by fourth roots of energies",
                  presets::allocated_two_shot<>{.chunker = {.bits = 1, .weighting = 0.25f}},
                  529);
  golden.check();
}
