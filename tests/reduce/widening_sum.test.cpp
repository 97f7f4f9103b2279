// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exact sums in native integers, and the largest world they serve.

#include "conformance/reducer_conformance.hpp"

#include <tersum/reduce/widening_sum.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <type_traits>

namespace {

using tersum::widening_sum;

// The sum of `ranks` equal codes, as a transport adds them.
template <class Reducer>
std::int64_t summed(int ranks, int code)
{
  using element = typename Reducer::op::element;
  element total = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    total = typename Reducer::op{}(total, static_cast<element>(code));
  }
  return total;
}

TEST_CASE_TEMPLATE("[widening_sum] max_world ranks sum exactly, one more does not",
                   Reducer,
                   widening_sum<2, 8>,
                   widening_sum<3, 8>,
                   widening_sum<4, 8>,
                   widening_sum<5, 8>,
                   widening_sum<6, 8>,
                   widening_sum<7, 8>,
                   widening_sum<8, 8>,
                   widening_sum<2, 16>,
                   widening_sum<4, 16>,
                   widening_sum<6, 16>,
                   widening_sum<8, 16>)
{
  static_assert(sizeof(typename Reducer::op::element) * 8 == Reducer::lane_bits);
  static_assert(std::is_signed_v<typename Reducer::op::element>);
  for (int level = 1; level <= (1 << (Reducer::code_bits - 1)) - 1; level += (level < 8 ? 1 : 17)) {
    CAPTURE(level);
    int const world = Reducer::max_world(level);
    for (int const code : {level, -level}) {
      CHECK(summed<Reducer>(world, code) == std::int64_t{world} * code);
    }
    CHECK(summed<Reducer>(world + 1, level) != std::int64_t{world + 1} * level);
  }
}

TEST_CASE_TEMPLATE("[widening_sum] obeys the laws of a reducer",
                   Reducer,
                   widening_sum<2, 8>,
                   widening_sum<4, 8>,
                   widening_sum<8, 8>,
                   widening_sum<4, 16>,
                   widening_sum<8, 16>,
                   widening_sum<6, 32>)
{
  tersum::tests::check_reduce_op_laws<typename Reducer::op>();
  tersum::tests::check_reducer_laws<Reducer>((1 << (Reducer::code_bits - 1)) - 1);
}

TEST_CASE("[widening_sum] 4-bit codes in bytes serve 18 ranks")
{
  static_assert(widening_sum<4, 8>::max_world(7) == 18);
  static_assert(widening_sum<8, 8>::max_world(127) == 1);
  static_assert(widening_sum<8, 16>::max_world(127) == 258);
  static_assert(widening_sum<6, 32>::max_world(21) == 102'261'126);
}

}  // namespace
