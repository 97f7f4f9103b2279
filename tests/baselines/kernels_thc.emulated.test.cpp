// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel bodies that pack indices of tables and unpack their sums equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"
#include "support/served_sums.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[kernels] indices and sums of table values equal those of the CPU executor")
{
  auto const compare = [](auto const& codec) {
    served_sums const served{codec};
    auto const want = served.template run<host_buffer>(cpu_executor{});
    CHECK((served.template run<host_buffer>(cpu_executor{.threads = 2}) == want));
    CHECK((served.template run<host_buffer>(
             cpu_executor{.instructions = instruction_set::baseline}) == want));
    for (emulator::thread_order const order : emulator::thread_orders) {
      CAPTURE(order);
      CHECK((served.template run<host_buffer>(emulated_executor{order}) == want));
    }
  };
  SUBCASE("in lanes of 8 bits") { compare(presets::thc_lookup4); }
  SUBCASE("in lanes of 16 bits") { compare(presets::thc_lookup4_wide); }
}

}  // namespace
