// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codebook of more bits than any chunk may have.
// expected: tersum: lloyd_max<Bits> needs 1 <= Bits <= 16

#include <tersum/quantize/lloyd_max.hpp>

auto const bits = tersum::lloyd_max<17>::bits;
