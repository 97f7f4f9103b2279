// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rows and columns that the library keeps follow what was decoded.

#include <tersum/presets.hpp>

struct still : tersum::given_diagonal {
  static constexpr bool factored = true;
};

// expected: tersum: a factored metric has follow and share
tersum::two_shot_codec<tersum::fixed_chunks<256>,
                       tersum::partial_hadamard<256>,
                       tersum::lloyd_max<4>,
                       tersum::no_feedback,
                       still> const in_units{};
