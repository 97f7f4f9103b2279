// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels that choose chunks, in the emulator.

#include "in_the_emulator.hpp"
#include "select_cases.hpp"

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[device] kernels that choose take the largest norms, the first of equal ones",
                   Norm,
                   float,
                   bfloat16)
{
  in_every_order([](auto const& on) {
    for (std::size_t const count : {0u, 1u, 997u}) { check_top_chunks<Norm>(on, count); }
  });
}

TEST_CASE("[device] six launches of several blocks choose alike")
{
  check_top_chunks<bfloat16>(emulated_placement{}, (1u << 17) + 5);
}

TEST_CASE("[device] kernels choose as an exchange does")
{
  in_every_order([](auto const& on) { check_choice_of_exchange(on, 20011); });
}

TEST_CASE("[device] launches that choose name the argument at fault and write nothing")
{
  check_select_arguments(emulated_placement{});
}
