// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Norms, rotations and codes of arrays on the CPU.

#include "../../examples/your_own/cosine_transform.hpp"
#include "array_cases.hpp"
#include "on_the_cpu.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE(
  "[device] chunk_norms are the squared norms, and those that an exchange agrees on",
  Element,
  float,
  half,
  bfloat16)
{
  on_every_cpu([](auto const& on) {
    check_norms<32, Element>(on);
    check_norms<128, Element>(on);
    check_norms<1024, Element>(on);
  });
}

TEST_CASE_TEMPLATE("[device] rotate is signs and the Hadamard matrix, and rotate_back its inverse",
                   Element,
                   float,
                   half,
                   bfloat16)
{
  on_every_cpu([](auto const& on) {
    check_rotation<128, Element>(on);
    check_rotation<256, Element>(on);
    check_rotation<2048, Element>(on);
  });
}

TEST_CASE("[device] a rotator of users, of the plain form alone, rotates arrays")
{
  on_every_cpu([](auto const& on) {
    check_plain_rotator<float>(on, cosine_transform<128>{});
    check_plain_rotator<half>(on, cosine_transform<128>{});
  });
}

TEST_CASE("[device] quantize packs the codes of the wire format, and dequantize reads them")
{
  on_every_cpu([](auto const& on) {
    check_codes<128, stochastic_quantizer<4>, saturating_sum<4>>(on);
    check_codes<256, stochastic_quantizer<2, independent>, saturating_sum<2>>(on);
    check_codes<1024, nearest_quantizer<8>, saturating_sum<8>>(on);
    check_codes<512, stochastic_quantizer<4>, widening_sum<4, 8>>(on);
    check_codes<512, stochastic_quantizer<4>, guard_lanes<8>>(on);
  });
}

TEST_CASE("[device] rotate, quantize, dequantize and rotate_back make an exchange")
{
  on_every_cpu([](auto const& on) {
    for (std::size_t const count : {std::size_t{1}, std::size_t{5003}}) {
      check_against_exchange<128, stochastic_quantizer<4>, saturating_sum<4>>(on, count);
      check_against_exchange<1024, stochastic_quantizer<8>, saturating_sum<8>>(on, count);
      check_against_exchange<512, nearest_quantizer<4>, guard_lanes<8>>(on, count);
    }
  });
}

TEST_CASE("[device] calls on arrays name the argument at fault and write nothing")
{
  check_array_arguments(cpu_placement{});
}
