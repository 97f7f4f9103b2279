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

TEST_CASE_TEMPLATE("[widening_sum] obeys the laws of a reducer",
                   Reducer,
                   widening_sum<2, 8>,
                   widening_sum<3, 8>,
                   widening_sum<4, 8>,
                   widening_sum<5, 8>,
                   widening_sum<7, 8>,
                   widening_sum<8, 8>,
                   widening_sum<4, 16>,
                   widening_sum<8, 16>,
                   widening_sum<6, 32>)
{
  static_assert(sizeof(typename Reducer::op::element) * 8 == Reducer::lane_bits);
  static_assert(std::is_signed_v<typename Reducer::op::element>);
  tersum::tests::check_reduce_op_laws<typename Reducer::op>();
  constexpr int most = (1 << (Reducer::code_bits - 1)) - 1;
  for (int level = 1; level <= most; level += (level < 8 ? 1 : 17)) {
    if (level == most || Reducer::lane_bits == 8) {
      tersum::tests::check_reducer_laws<Reducer>(level);
    }
  }
}

TEST_CASE("[widening_sum] 4-bit codes in bytes serve 18 ranks")
{
  static_assert(widening_sum<4, 8>::max_world(7) == 18);
  static_assert(widening_sum<8, 8>::max_world(127) == 1);
  static_assert(widening_sum<8, 16>::max_world(127) == 258);
  static_assert(widening_sum<6, 32>::max_world(21) == 102'261'126);
}

}  // namespace
