// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor equals the CPU executor byte for byte: other sizes of chunks.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

template <int Size>
using tracked = codec<fixed_chunks<Size>,
                      partial_hadamard<Size>,
                      rms_range<tracked_correlation>,
                      stochastic_quantizer<4>,
                      saturating_sum<4>>;

template <int Size>
using fed_back = codec<fixed_chunks<Size>,
                       partial_hadamard<Size>,
                       absmax_range<tracked_correlation, bfloat16>,
                       nearest_quantizer<8>,
                       saturating_sum<8>,
                       error_feedback>;

TEST_CASE_TEMPLATE("[cuda_executor] other sizes of chunks equal the CPU executor",
                   Codec,
                   tracked<128>,
                   tracked<512>,
                   tracked<4096>,
                   tracked<32768>,
                   fed_back<256>,
                   fed_back<2048>,
                   fed_back<16384>)
{
  compare_all<float>(Codec{});
}
