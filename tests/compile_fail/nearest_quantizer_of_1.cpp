// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A grid with no level but zero.
// expected: tersum: nearest_quantizer<Bits> needs 2 <= Bits <= 8

#include <tersum/quantize/nearest_quantizer.hpp>

int const limit = tersum::nearest_quantizer<1>::max_level;
