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

TEST_CASE("[device] left_factors and right_factors are products")
{
  on_every_cpu([](auto const& on) {
    check_products(on, 1, 1, 1);
    check_products(on, 63, 65, 3);
    check_products(on, 64, 64, 8);
    check_products(on, 131, 67, 17);
    check_products(on, 0, 7, 2);
    check_products(on, 1, 12256, 1);
    check_products(on, 12257, 1, 1);
    check_products(on, 509, 511, 2);
    check_products(on, 512, 513, 3);
    check_products(on, 3, 1031, 3);
  });
}

TEST_CASE("[device] lists of matrices are worked on as each of them is alone")
{
  on_every_cpu([](auto const& on) {
    check_list(on);
    check_power_iterations(on);
  });
}

TEST_CASE("[device] power_iteration finds the largest singular values")
{
  on_every_cpu([](auto const& on) { check_power_iteration(on); });
}

TEST_CASE("[device] the parts of an iteration make the factors of an exchange")
{
  on_every_cpu([](auto const& on) {
    check_factors_of_exchange(on, 97, 130);
    check_factors_of_exchange(on, 3, 50);
  });
}

TEST_CASE("[device] calls on factors name the argument at fault and write nothing")
{
  check_low_rank_arguments(cpu_placement{});
}
