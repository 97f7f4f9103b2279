// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes wider than the dither resolves.
// expected: tersum: stochastic_quantizer<Bits> needs 2 <= Bits <= 8

#include <tersum/quantize/stochastic_quantizer.hpp>

int const limit = tersum::stochastic_quantizer<9>::max_level;
