// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A float of each coordinate has an error in units of that coordinate.

#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>

// expected: tersum: a cast of all coordinates takes plain_metric
tersum::cast_codec<tersum::half,
                   tersum::fixed_chunks<1024>,
                   tersum::no_feedback,
                   tersum::kept_diagonal> const in_units{};
