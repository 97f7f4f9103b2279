// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Orthonormal columns and factors of matrices on the CPU.

#include "low_rank_cases.hpp"
#include "on_the_cpu.hpp"

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[device] orthogonalize makes columns orthonormal",
                   Orthogonalizer,
                   gram_schmidt,
                   robust_cholesky_qr2)
{
  on_every_cpu([](auto const& on) {
    check_orthogonalize<Orthogonalizer>(on, 1, 1);
    check_orthogonalize<Orthogonalizer>(on, 65, 3);
    check_orthogonalize<Orthogonalizer>(on, 997, 16);
    check_orthogonalize<Orthogonalizer>(on, 300, 64);
  });
}

TEST_CASE("[device] factors are products of each matrix of a bucket")
{
  on_every_cpu([](auto const& on) {
    check_products<1>(on, {{1, 1}, {1, 12256}, {12257, 1}});
    check_products<2>(on, {{509, 511}, {1, 3}});
    check_products<3>(on, {{63, 65}, {512, 513}, {3, 1031}});
    check_products<8>(on, {{64, 64}});
    check_products<17>(on, {{131, 67}, {5, 9}});
  });
}

TEST_CASE("[device] lists of factors are worked on as each of them is alone")
{
  on_every_cpu([](auto const& on) { check_list(on); });
}

TEST_CASE("[device] power_iteration finds the largest singular values")
{
  on_every_cpu([](auto const& on) { check_power_iteration(on); });
}

TEST_CASE("[device] calls on factors name the argument at fault and write nothing")
{
  check_low_rank_arguments(cpu_placement{});
}
