// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Norms, rotations and codes of arrays on the CPU.

#include "array_cases.hpp"
#include "on_the_cpu.hpp"

#include <doctest/doctest.h>

using namespace tersum::tests;

TEST_CASE("[device] calls on arrays do what their references say")
{
  check_arrays([](auto const& check) { on_every_cpu(check); });
}

TEST_CASE("[device] calls on arrays name the argument at fault and write nothing")
{
  check_array_arguments(cpu_placement{});
}
