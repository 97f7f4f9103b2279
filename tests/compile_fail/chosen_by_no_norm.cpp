// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A range whose scalars do not say how large a chunk is, under a chunker that chooses by that.
// expected: tersum: chunks are chosen by their norms: use rms_range, or give your range energy(agreed, coordinates)

#include <tersum/chunk/top_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

using codec = tersum::codec<tersum::top_chunks<1024>,
                            tersum::no_rotation,
                            tersum::absmax_range<tersum::no_headroom>,
                            tersum::stochastic_quantizer<4>,
                            tersum::saturating_sum<4>>;

int const size = codec::chunk_size;
