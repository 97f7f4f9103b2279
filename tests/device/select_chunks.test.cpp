// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The selection of chunks on the CPU.

#include "on_the_cpu.hpp"
#include "select_cases.hpp"
#include "support/sanitized.hpp"

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE(
  "[device] select_chunks takes the largest norms, of equal ones those whose turn it is",
  Norm,
  float,
  bfloat16)
{
  for (int const threads : {1, 4}) {
    for (std::size_t const count : {0u, 1u, 2u, 997u, 70001u}) {
      for (std::uint64_t const turn : {0u, 1u, 2u}) {
        if (sanitized && count > 997 && turn != 1) { continue; }
        check_top_chunks<Norm>(cpu_placement{{.threads = threads}}, count, turn);
      }
    }
  }
}

TEST_CASE("[device] chunk_norms and select_chunks choose as an exchange does")
{
  check_rule_of_widths();
  for (std::size_t const coordinates : {255u, 256u, 257u, 20011u}) {
    check_choice_of_exchange(cpu_placement{}, coordinates);
  }
}

TEST_CASE("[device] select_chunks names the argument at fault and writes nothing")
{
  check_select_arguments(cpu_placement{});
}
