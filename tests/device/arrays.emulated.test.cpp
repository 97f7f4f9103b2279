// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Norms, rotations and codes of arrays in the emulator.

#include "array_cases.hpp"
#include "in_the_emulator.hpp"

#include <doctest/doctest.h>

using namespace tersum::tests;

TEST_CASE("[device] kernels: calls on arrays do what their references say")
{
  check_arrays([](auto const& check) { in_every_order(check); });
}

TEST_CASE("[device] kernels: calls on arrays name the argument at fault and write nothing")
{
  check_array_arguments(emulated_placement{});
}
