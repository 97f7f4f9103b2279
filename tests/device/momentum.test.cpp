// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Momentum of arrays on the CPU.

#include "momentum_cases.hpp"
#include "on_the_cpu.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[device] momentum is that of its formulas, and stays where values are not finite")
{
  on_every_cpu([](auto const& on) { check_all_of_momentum(on); });
}
