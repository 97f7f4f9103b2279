// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Indices that do not fill words.
// expected: tersum: lookup_sum has indices of 1, 2, 4 or 8 bits

#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum_baselines/lookup_sum.hpp>

int const world = tersum::lookup_sum<tersum::lookup_table<0, 1, 2, 3, 5, 6, 7, 8>>::max_world;
