// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What was sent is kept for feedback, and these factors have none.

#include <tersum/presets.hpp>

// expected: tersum: sent_values serves the feedback of the factors, and these have none
tersum::quantized_low_rank_codec<tersum::low_rank_codec<tersum::low_rank<4>,
                                                        float,
                                                        tersum::low_rank_schedule::paired,
                                                        tersum::no_feedback>,
                                 tersum::presets::two_shot<8, tersum::sent_values>> const unused{};
