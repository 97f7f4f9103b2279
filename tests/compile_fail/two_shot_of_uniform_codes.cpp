// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantizer with neither a codebook nor blocks.
// expected: no operand of the disjunction is satisfied

#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/two_shot_codec.hpp>

using codec = tersum::two_shot_codec<tersum::fixed_chunks<1024>,
                                     tersum::partial_hadamard<1024>,
                                     tersum::stochastic_quantizer<4>>;
