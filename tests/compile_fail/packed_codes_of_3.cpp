// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Lanes that do not fill a word.
// expected: tersum: packed_codes<Bits> has lanes of 2, 4, 8, 16 or 32 bits

#include <tersum/quantize/packed_codes.hpp>

int const lanes = tersum::packed_codes<3>::lanes;
