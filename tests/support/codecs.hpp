// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs of chunks of one size, by what tests vary.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

namespace tersum::tests {

//! Rotated chunks of `Size` in codes with scales.
template <int Size, class Quantizer, class Form, class... More>
using rotated_codes =
  codec<fixed_chunks<Size>, partial_hadamard<Size>, scaled_codes<Quantizer>, Form, More...>;

//! Chunks of `Size` in codes that the wire adds; rotated, or as they are.
//! @{
template <int Size, class Range, class Quantizer, class Reducer, class... More>
using rotated_sums = codec<fixed_chunks<Size>,
                           partial_hadamard<Size>,
                           summed_codes<Range, Quantizer, Reducer>,
                           in_wire,
                           More...>;
template <int Size, class Range, class Quantizer, class Reducer, class... More>
using plain_sums =
  codec<fixed_chunks<Size>, no_rotation, summed_codes<Range, Quantizer, Reducer>, in_wire, More...>;
//! @}

//! Chunks of `Size` in saturating codes of 4 bits, rotated in any way.
template <class Rotator, class Range, class Feedback = no_feedback, int Size = 256>
using in_lanes = codec<fixed_chunks<Size>,
                       Rotator,
                       summed_codes<Range, stochastic_quantizer<4>, saturating_sum<4>>,
                       in_wire,
                       Feedback>;

//! Elements that the wire adds, of the chunks that a chunker chooses.
template <class T, class Chunker, class... More>
using cast_sums = codec<Chunker, no_rotation, cast<T>, in_wire, More...>;

}  // namespace tersum::tests
