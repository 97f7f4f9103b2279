// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of differences that the wire would add up as gradients.
// expected: tersum: difference_feedback is for values_codec

#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/presets.hpp>

using codec =
  tersum::presets::tracked_saturating<tersum::stochastic_quantizer<8>, tersum::difference_feedback>;

auto const size = codec{}.plan({.coordinates = 4096}, {.size = 2, .rank = 0}).state_bytes();
