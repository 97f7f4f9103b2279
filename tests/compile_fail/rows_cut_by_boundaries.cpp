// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rows and columns of matrices, which boundaries of shards cut.

#include <tersum/metric/factored.hpp>
#include <tersum/sharded_presets.hpp>

// expected: tersum: boundaries of values_codec cut rows of matrices
tersum::values_codec<tersum::fixed_chunks<256>,
                     tersum::partial_hadamard<256>,
                     tersum::lloyd_max<4>,
                     tersum::no_feedback,
                     tersum::kept_factors> const in_units{};
