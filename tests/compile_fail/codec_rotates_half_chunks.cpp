// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A rotation shorter than the chunk that it rotates.
// expected: tersum: partial_hadamard<N> rotates whole chunks: make N equal to the chunk size

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::partial_hadamard<512>,
                            tersum::rms_range<>,
                            tersum::stochastic_quantizer<4>,
                            tersum::saturating_sum<4>>;

int const size = codec::chunk_size;
