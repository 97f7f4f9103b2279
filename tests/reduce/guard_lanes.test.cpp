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

// The words of `ranks` ranks, the even lanes at code + level = 2 level and the odd ones at 0, summed as a transport does.
template <class Reducer>
typename Reducer::op::element summed(int ranks, int level)
{
  using word  = typename Reducer::op::element;
  word packed = 0;
  for (int first = 0; first < static_cast<int>(sizeof(word)) * 8; first += 2 * Reducer::lane_bits) {
    packed |= static_cast<word>(2 * level) << first;
  }
  word total = 0;
  for (int rank = 0; rank < ranks; ++rank) { total = typename Reducer::op{}(total, packed); }
  return total;
}

template <class Reducer>
std::uint64_t lane_of(typename Reducer::op::element word, int lane)
{
  return static_cast<std::uint64_t>(word) >> (lane * Reducer::lane_bits) &
         ((1u << Reducer::lane_bits) - 1);
}

TEST_CASE_TEMPLATE(
  "[guard_lanes] max_world ranks leave their lanes alone, one more carries into the next",
  Reducer,
  guard_lanes<4>,
  guard_lanes<8>,
  guard_lanes<16>,
  guard_lanes<4, std::uint64_t>,
  guard_lanes<8, std::uint64_t>,
  guard_lanes<16, std::uint64_t>)
{
  for (int const level : {1, 3, 7, 15, 31, 63, 127}) {
    CAPTURE(level);
    if (2 * level >= 1 << Reducer::lane_bits) { continue; }
    int const world  = Reducer::max_world(level);
    auto const total = summed<Reducer>(world, level);
    CHECK(lane_of<Reducer>(total, 0) ==
          static_cast<std::uint64_t>(2 * level) * static_cast<std::uint64_t>(world));
    CHECK(lane_of<Reducer>(total, 1) == 0);
    CHECK(lane_of<Reducer>(summed<Reducer>(world + 1, level), 1) == 1);
  }
}

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
  tersum::tests::check_reducer_laws<Reducer>(1);
  tersum::tests::check_reducer_laws<Reducer>(7);
  if constexpr (Reducer::lane_bits >= 8) { tersum::tests::check_reducer_laws<Reducer>(127); }
}

TEST_CASE("[guard_lanes] serve the worlds that their documentation names")
{
  static_assert(guard_lanes<8>::max_world(7) == 18);
  static_assert(guard_lanes<4>::max_world(1) == 7);
}

TEST_CASE("[guard_lanes] a level that no lane holds fits no world")
{
  static_assert(guard_lanes<4>::max_world(15) == 0);
  static_assert(guard_lanes<8>::max_world(128) == 0);
}

}  // namespace
