// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What was sent is kept where codes are added, or where owners of parts add values.

#include <tersum/presets.hpp>

// expected: tersum: sent_values is for codec and two_shot_codec, in chunks that all travel
tersum::quantized_low_rank_codec<tersum::presets::power_iteration<4>,
                                 tersum::presets::gathered<4, tersum::sent_values>> const
  gathered{};
