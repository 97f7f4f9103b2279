// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Lanes that do not fill a word.
// expected: tersum: a reducer's lane_bits are 2, 4, 8, 16 or 32

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            tersum::rms_range<>,
                            tersum::stochastic_quantizer<4>,
                            tersum::saturating_sum<5>>;

int const size = codec::chunk_size;
