// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rows and columns are few, and are kept in float.

#include <tersum/presets.hpp>

struct in_16_bits : tersum::kept_factors {
  using stored_scale = tersum::bfloat16;
};

// expected: tersum: a factored metric keeps its rows and columns in float
tersum::two_shot_codec<tersum::fixed_chunks<256>,
                       tersum::partial_hadamard<256>,
                       tersum::lloyd_max<4>,
                       tersum::no_feedback,
                       in_16_bits> const in_units{};
