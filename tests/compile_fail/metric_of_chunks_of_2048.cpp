// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The largest scale of a chunk is found among the threads of a warp.

#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>

// expected: tersum: a metric with scales takes chunks of up to 1024 coordinates
tersum::two_shot_codec<tersum::fixed_chunks<2048>,
                       tersum::partial_hadamard<2048>,
                       tersum::lloyd_max<4>,
                       tersum::no_feedback,
                       tersum::kept_diagonal> const in_units{};
