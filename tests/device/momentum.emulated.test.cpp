// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Momentum of arrays in the emulator.

#include "in_the_emulator.hpp"
#include "momentum_cases.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE(
  "[device] kernels: momentum is that of its formulas, and stays where values are not finite")
{
  in_every_order([](auto const& on) { check_all_of_momentum(on); });
}
