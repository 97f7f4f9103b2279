// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback through the rotation of a whole tensor.
// expected: tersum: a rotator of whole tensors has no feedback: use partial_hadamard

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/global_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum_baselines/full_hadamard.hpp>

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::full_hadamard,
                            tersum::global_range<>,
                            tersum::stochastic_quantizer<4>,
                            tersum::widening_sum<4, 8>,
                            tersum::error_feedback>;

int const size = codec::chunk_size;
