// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunker of one's own whose chunks are not a power of two.
// expected: tersum: chunk_size must be a power of two from 128 to 32768; cast_codec takes smaller ones

#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

struct thousands {
  static constexpr int chunk_size = 1000;
};

using codec = tersum::codec<thousands,
                            tersum::no_rotation,
                            tersum::rms_range<>,
                            tersum::stochastic_quantizer<4>,
                            tersum::saturating_sum<4>>;

int const size = codec::chunk_size;
