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
    check_products<9>(on, {{1, 1}, {65, 67}});
    check_products<3>(on, {{66, 545}, {4, 2}});
  });
  check_products<20>(emulated_placement{}, {{64, 70}});
  check_products<1>(emulated_placement{}, {{1, 1031}, {521, 2}});
  check_products<2>(emulated_placement{}, {{3, 12400}});
}

TEST_CASE("[device] kernels work on lists of factors, and find singular values")
{
  check_list(emulated_placement{});
  check_power_iteration(emulated_placement{});
}

TEST_CASE("[device] launches on factors name the argument at fault and write nothing")
{
  check_low_rank_arguments(emulated_placement{});
}
