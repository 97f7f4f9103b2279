// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Head-room for a sum that cannot saturate.
// expected: tersum: tracked_correlation is for saturating lanes of up to 8 bits

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::partial_hadamard<1024>,
                            tersum::rms_range<tersum::tracked_correlation>,
                            tersum::stochastic_quantizer<4>,
                            tersum::widening_sum<4, 8>>;

int const size = codec::chunk_size;
