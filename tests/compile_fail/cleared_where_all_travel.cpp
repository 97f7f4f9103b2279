// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is cleared where it was sent, in a codec that sends all coordinates.
// expected: tersum: cleared_feedback is for codecs that leave coordinates out

#include <tersum/feedback/cleared_feedback.hpp>
#include <tersum/presets.hpp>

using codec =
  tersum::presets::tracked_saturating<tersum::nearest_quantizer<4>, tersum::cleared_feedback>;

auto const size = codec{}.plan({.coordinates = 4096}, {.size = 2, .rank = 0}).state_bytes();
