// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Powers of two of more bits than a code has, rounded to nearest.
// expected: tersum: natural_quantizer<Levels> needs 2 <= Levels <= 7
// expected: tersum: natural_quantizer rounds at random: not no_dither

#include <tersum/baseline/natural_quantizer.hpp>

int const bits = tersum::natural_quantizer<8, tersum::no_dither>::bits;
