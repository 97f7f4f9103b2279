// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks that are chosen, and widths that are, summed in the wire.

#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

TEST_CASE("[golden] exchanges of chosen chunks are what they were")
{
  tests::golden_presets golden{"chosen"};
  TERSUM_CHOSEN_PRESETS(TERSUM_DESCRIBE, TERSUM_DESCRIBE_FULLY);
  using in_codes = presets::top_saturating<nearest_quantizer<4>, error_feedback>;
  golden.describe("chosen chunks in codes with feedback",
                  in_codes{.chunker = {.bits = 2}, .coder = {.range = {.clip = 0}}});
  using random = codec<random_chunks<64>, no_rotation, cast<tersum::half>, in_wire, error_feedback>;
  golden.describe("random chunks with feedback", random{.chunker = {.bits = 2}});
  using of_1024 = codec<allocated_chunks<1024, 2, 4, 8>,
                        partial_hadamard<1024>,
                        summed_codes<rms_range<tracked_correlation, bfloat16>,
                                     stochastic_quantizer<8>,
                                     saturating_sum<8>>,
                        in_wire>;
  golden.describe("widths of chunks of 1024, summed", of_1024{.chunker = {.bits = 8}});
  golden.check();
}
