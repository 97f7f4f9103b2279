// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Widths for every chunk with a reducer that has only one.
// expected: tersum: allocated_chunks needs a quantizer and a reducer with with_bits

#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

using codec = tersum::codec<tersum::allocated_chunks<256, 2, 4>,
                            tersum::partial_hadamard<256>,
                            tersum::rms_range<tersum::no_headroom>,
                            tersum::stochastic_quantizer<4>,
                            tersum::widening_sum<4, 8>>;

auto const level = codec{}.at_level<1>();
