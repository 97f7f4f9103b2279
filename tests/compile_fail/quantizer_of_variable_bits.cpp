// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantizer whose bits are no constant: the compiler names the requirement.
// expected: has_bits

#include <tersum/concepts.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>

struct variable_quantizer : tersum::stochastic_quantizer<4> {
  int bits = 4;
};

static_assert(tersum::quantizer<variable_quantizer>);
