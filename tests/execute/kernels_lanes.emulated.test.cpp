// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every width of codes and lanes, and quantizers of a user: the kernel bodies equal the CPU executor bit for bit.

#include "../../examples/your_own/sign_quantizer.hpp"
#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"
#include "support/user_quantizers.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class Quantizer, class Reducer, int Size = 1024>
using rotated = tests::rotated_sums<Size, rms_range<fixed_headroom>, Quantizer, Reducer>;

template <class Quantizer, class Reducer>
using fed_back =
  tests::rotated_sums<1024, rms_range<fixed_headroom>, Quantizer, Reducer, error_feedback>;

template <class Quantizer, class Reducer>
using unrotated = tests::plain_sums<256, absmax_range<fixed_headroom>, Quantizer, Reducer>;

template <int Bits>
using stochastic = stochastic_quantizer<Bits>;
template <int Bits>
using nearest = nearest_quantizer<Bits>;

// As many ranks as the lanes hold, at most three.
template <class Codec>
void compare_lanes(Codec const& codec = {})
{
  int const most = Codec::reducer_type::max_world(Codec::quantizer_type::max_level);
  compare_kernels<Codec, float>({.codec    = codec,
                                 .gradient = {.coordinates = several_chunks<Codec>()},
                                 .world    = std::min(3, most),
                                 .steps    = 2},
                                emulator::thread_orders);
}

template <class... Codecs>
void compare_all_lanes()
{
  (compare_lanes<Codecs>(), ...);
}

TEST_CASE("[kernels] saturating lanes of every width")
{
  compare_all_lanes<rotated<stochastic<2>, saturating_sum<2>>,
                    rotated<stochastic<3>, saturating_sum<4>>,
                    rotated<stochastic<5>, saturating_sum<8>>,
                    rotated<stochastic<7>, saturating_sum<8>>,
                    rotated<stochastic<8>, saturating_sum<16>>,
                    rotated<nearest<2>, saturating_sum<2>>,
                    rotated<nearest<4>, saturating_sum<4>, 128>,
                    rotated<nearest<6>, saturating_sum<8>>,
                    rotated<nearest<7>, saturating_sum<16>, 256>,
                    unrotated<stochastic<2>, saturating_sum<2>>,
                    unrotated<nearest<4>, saturating_sum<4>>>();
}

TEST_CASE("[kernels] native integers wider than the codes")
{
  compare_all_lanes<rotated<stochastic<2>, widening_sum<2, 8>>,
                    rotated<stochastic<6>, widening_sum<6, 8>>,
                    rotated<stochastic<4>, widening_sum<4, 16>>,
                    rotated<nearest<8>, widening_sum<8, 8>>,
                    rotated<nearest<5>, widening_sum<5, 16>>,
                    unrotated<stochastic<8>, widening_sum<8, 16>>,
                    fed_back<nearest<3>, widening_sum<3, 8>>>();
}

TEST_CASE("[kernels] guarded lanes in words of 32 and 64 bits")
{
  compare_all_lanes<rotated<stochastic<2>, guard_lanes<4, std::uint32_t>>,
                    rotated<nearest<3>, guard_lanes<4, std::uint64_t>>,
                    rotated<stochastic<4>, guard_lanes<8, std::uint64_t>>,
                    rotated<stochastic<6>, guard_lanes<8, std::uint32_t>, 128>,
                    rotated<stochastic<8>, guard_lanes<16, std::uint32_t>>,
                    unrotated<nearest<8>, guard_lanes<16, std::uint64_t>>,
                    fed_back<nearest<2>, guard_lanes<4, std::uint32_t>>,
                    fed_back<stochastic<8>, guard_lanes<16, std::uint64_t>>>();
}

TEST_CASE("[kernels] quantizers of one's own")
{
  compare_all_lanes<rotated<uneven_quantizer, saturating_sum<4>>,
                    rotated<uneven_quantizer, widening_sum<4, 16>>,
                    fed_back<uneven_quantizer, guard_lanes<8>>,
                    unrotated<::sign_quantizer, saturating_sum<2>>,
                    fed_back<::sign_quantizer, saturating_sum<4>>>();
  compare_lanes<rotated<powers, saturating_sum<4>>>({.coder = {.quantizer = {.threshold = 3.0F}}});
  compare_lanes<fed_back<powers, widening_sum<4, 8>>>(
    {.coder = {.quantizer = {.threshold = 7.0F}}});
}

}  // namespace
