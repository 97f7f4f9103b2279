// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels on factors of matrices, in the emulator.

#include "in_the_emulator.hpp"
#include "low_rank_cases.hpp"

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[device] kernels make columns orthonormal",
                   Orthogonalizer,
                   gram_schmidt,
                   robust_cholesky_qr2)
{
  in_every_order([](auto const& on) {
    check_orthogonalize<Orthogonalizer>(on, 1, 1);
    check_orthogonalize<Orthogonalizer>(on, 131, 5);
  });
  check_orthogonalize<Orthogonalizer>(emulated_placement{}, 200, 33);
}

TEST_CASE("[device] kernels multiply matrices and factors")
{
  in_every_order([](auto const& on) {
    check_products(on, 1, 1, 1);
    check_products(on, 65, 67, 9);
    check_products(on, 0, 7, 2);
    check_products(on, 66, 545, 3);
  });
  check_products(emulated_placement{}, 64, 70, 20);
  check_products(emulated_placement{}, 1, 1031, 1);
  check_products(emulated_placement{}, 521, 2, 1);
  check_products(emulated_placement{}, 3, 12400, 2);
}

TEST_CASE("[device] kernels work on lists of matrices as on each of them alone")
{
  check_list(emulated_placement{});
  check_power_iterations(emulated_placement{});
}

TEST_CASE("[device] kernels find the largest singular values")
{
  check_power_iteration(emulated_placement{});
}

TEST_CASE("[device] kernels make the factors of an exchange")
{
  in_every_order([](auto const& on) { check_factors_of_exchange(on, 97, 66); });
}

TEST_CASE("[device] launches on factors name the argument at fault and write nothing")
{
  check_low_rank_arguments(emulated_placement{});
}
