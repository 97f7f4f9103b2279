// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The basis of factors changes from step to step, so that a residual of theirs means nothing in the next.

#include <tersum/presets.hpp>

// expected: tersum: factors change their basis from step to step: give feedback to the low_rank_codec
tersum::quantized_low_rank_codec<tersum::presets::power_iteration<4>,
                                 tersum::presets::two_shot<2, tersum::error_feedback>> const
  twice{};
