// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Orthonormal columns and factors of matrices in device memory.

#include "low_rank_cases.hpp"
#include "on_the_device.cuh"

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[device] orthogonalize on a device",
                   Orthogonalizer,
                   gram_schmidt,
                   robust_cholesky_qr2)
{
  stream const on;
  auto const at = place_on(on, 100000);
  check_orthogonalize<Orthogonalizer>(at, 1, 1);
  check_orthogonalize<Orthogonalizer>(at, 131, 5);
  check_orthogonalize<Orthogonalizer>(at, 200, 17);
}

TEST_CASE("[device] power_iteration on a device")
{
  stream const on;
  auto const at = place_on(on, 100000);
  check_products<9>(at, {{1, 1}, {65, 67}});
  check_products<20>(at, {{64, 70}});
  check_products<3>(at, {{66, 545}, {4, 2}});
  check_power_iteration(at);
  check_low_rank_arguments(at);
}
