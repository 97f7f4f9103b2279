// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What sorts by rows and columns has no scales of rows and columns.

#include <tersum/metric/factored.hpp>
#include <tersum/presets.hpp>
#include <tersum/sorted_codec.hpp>

// expected: tersum: sorted_codec takes a diagonal metric
tersum::sorted_codec<tersum::cast_codec<float>, 64, tersum::kept_factors> const in_factors{};
