// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exact lane sums inside native words, and the largest world they serve.

#include "conformance/reducer_conformance.hpp"

#include <tersum/reduce/guard_lanes.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using tersum::guard_lanes;

TEST_CASE_TEMPLATE("[guard_lanes] obeys the laws of a reducer",
                   Reducer,
                   guard_lanes<4>,
                   guard_lanes<8>,
                   guard_lanes<16>,
                   guard_lanes<4, std::uint64_t>,
                   guard_lanes<8, std::uint64_t>,
                   guard_lanes<16, std::uint64_t>)
{
  tersum::tests::check_reduce_op_laws<typename Reducer::op>();
  for (int const level : {1, 3, 7, 15, 31, 63, 127}) {
    if (2 * level < 1 << Reducer::lane_bits) { tersum::tests::check_reducer_laws<Reducer>(level); }
  }
}

TEST_CASE(
  "[guard_lanes] serve the worlds that their documentation names, and none with a level that no lane holds")
{
  static_assert(guard_lanes<8>::max_world(7) == 18);
  static_assert(guard_lanes<4>::max_world(1) == 7);
  static_assert(guard_lanes<4>::max_world(15) == 0);
  static_assert(guard_lanes<8>::max_world(128) == 0);
}

}  // namespace
