// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of differences whose owners would add them up as gradients.
// expected: tersum: difference_feedback is for values_codec

#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/presets.hpp>

using codec = tersum::presets::two_shot<8, tersum::difference_feedback>;

auto const size = codec{}.plan({.coordinates = 4096}, {.size = 2, .rank = 0}).state_bytes();
