// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA executor and gradients of 16 bits: the bytes of the CPU executor, and on tensor cores codes near its.

#include "support/compare_codes.hpp"
#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

//! @brief Of codecs that rotate on tensor cores: for 16 bits codes as near to the CPU's as their rounding allows, and the
//! same mean on all ranks; for float the same bytes.
template <class Element, class Codec>
void compare_near(Codec const& codec)
{
  std::uint64_t const some = most_coordinates() <= 300000 ? 40000 : 300000;
  for (bool const misaligned : {false, true}) {
    exchange_case<Codec, Element> const c{.codec      = codec,
                                          .gradient   = {.coordinates = prime_from(some)},
                                          .world      = 2,
                                          .steps      = 1,
                                          .misaligned = misaligned};
    CAPTURE(c);
    stream const on;
    exchange_trace const got =
      record_exchange<device_buffer>(cuda_executor{on.get()}, c, std::byte{0xa5});
    exchange_trace const want = record_exchange<host_buffer>(cpu_executor{}, c, std::byte{0x5a});
    CHECK(sent(got, "agreed scalars") == sent(want, "agreed scalars"));
    check_codes(codec, sent(got, "payload"), sent(want, "payload"));
    CHECK(sent(got, "gradient")[0] == sent(got, "gradient")[1]);
  }
  compare_all<float>(codec);
}

template <int Size>
using on_tensor_cores =
  codec<fixed_chunks<Size>,
        tensor_core_hadamard<Size>,
        summed_codes<rms_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>>,
        in_wire>;

TEST_CASE_TEMPLATE(
  "[cuda_executor] casts equal the CPU executor", Element, float, tersum::half, tersum::bfloat16)
{
  SUBCASE("fp32") { compare_all<Element>(presets::fp32); }
  SUBCASE("fp16") { compare_all<Element>(presets::fp16); }
  SUBCASE("bf16") { compare_all<Element>(presets::bf16); }
}

TEST_CASE_TEMPLATE("[cuda_executor] gradients of 16 bits equal the CPU executor",
                   Element,
                   tersum::half,
                   tersum::bfloat16)
{
  SUBCASE("thc_wide4") { compare_all<Element>(presets::thc_wide4); }
  SUBCASE("rotated_sat4") { compare_all<Element>(presets::rotated_sat4); }
  SUBCASE("rotated_sat4_ef")
  {
    compare_all<Element>(presets::rotated_sat4_ef);
    compare_offsets<Element>(presets::rotated_sat4_ef);
  }
}

TEST_CASE_TEMPLATE(
  "[cuda_executor] codes of 16 bits on tensor cores are near those of the CPU executor",
  Element,
  tersum::half,
  tersum::bfloat16)
{
  SUBCASE("rotated_sat4_tc")
  {
    compare_near<Element>(presets::rotated_sat4_tc);
    compare_offsets<Element>(presets::rotated_sat4_tc);
  }
  SUBCASE("256")
  {
    compare_near<Element>(on_tensor_cores<256>{.coder = {.range = {.clip = 1.9f}}});
  }
  SUBCASE("512")
  {
    compare_near<Element>(on_tensor_cores<512>{.coder = {.range = {.clip = 1.9f}}});
  }
}
