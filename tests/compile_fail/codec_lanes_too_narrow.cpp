// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of five bits in lanes of four.
// expected: tersum: the reducer's lanes are narrower than the quantizer's codes

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::partial_hadamard<1024>,
                            tersum::rms_range<>,
                            tersum::stochastic_quantizer<5>,
                            tersum::saturating_sum<4>>;

int const size = codec::chunk_size;
