// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every size of chunk, with and without rotation: the kernel bodies equal the CPU executor bit for bit.

#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <array>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <int Size>
using tracked = tests::
  rotated_sums<Size, rms_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>>;

template <int Size>
using fed_back = tests::rotated_sums<Size,
                                     absmax_range<no_headroom>,
                                     nearest_quantizer<8>,
                                     widening_sum<8, 16>,
                                     error_feedback>;

template <int Size>
using unrotated = tests::plain_sums<Size,
                                    absmax_range<tracked_correlation>,
                                    stochastic_quantizer<2, independent>,
                                    saturating_sum<2>,
                                    error_feedback>;

TEST_CASE_TEMPLATE("[kernels] chunks up to a block's",
                   Codec,
                   tracked<128>,
                   tracked<256>,
                   tracked<512>,
                   tracked<2048>,
                   tracked<4096>,
                   fed_back<128>,
                   fed_back<256>,
                   fed_back<512>,
                   fed_back<2048>,
                   fed_back<4096>,
                   unrotated<128>,
                   unrotated<512>,
                   unrotated<4096>)
{
  compare_sizes<float>(Codec{});
  compare_orders<float>(Codec{});
}

TEST_CASE("[kernels] chunks that share a warp or are a block's begin anywhere")
{
  compare_offsets<float>(tracked<128>{});
  compare_offsets<float>(fed_back<2048>{});
}

TEST_CASE("[kernels] blocks add up the chunks of one tensor in any order")
{
  constexpr std::array both{emulator::forward, emulator::reverse};
  compare_kernels<tracked<128>, float>({.gradient = deep_bucket<128>().gradient(), .steps = 2},
                                       both);
}

TEST_CASE_TEMPLATE("[kernels] chunks that need much shared memory",
                   Codec,
                   tracked<8192>,
                   tracked<16384>,
                   fed_back<16384>,
                   tracked<32768>,
                   unrotated<32768>)
{
  constexpr std::uint64_t size = Codec::chunk_size;
  compare_kernels<Codec, float>({.gradient = {.coordinates = prime_from(size)}, .steps = 2});
}

}  // namespace
