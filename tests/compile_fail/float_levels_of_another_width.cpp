// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Levels of a float of 4 bits in codes of 5.
// expected: tersum: group_absmax<Bits, Block, float_levels> needs the bits of that float

#include <tersum_baselines/float_levels.hpp>

int const bits = tersum::group_absmax<5, 32, tersum::e2m1_levels>::magnitudes;
