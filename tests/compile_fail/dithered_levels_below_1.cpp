// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A draw would round the largest magnitude beyond the last level.
// expected: tersum: group_absmax needs no_dither with levels that end below 1

#include <tersum/baseline/float_levels.hpp>

int const bits = tersum::group_absmax<8, 32, tersum::dynamic_levels>::magnitudes;
