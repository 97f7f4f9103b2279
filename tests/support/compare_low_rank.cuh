// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Comparisons of low-rank exchanges on a device with those of the CPU executor.

#pragma once

#include "compare_executors.cuh"
#include "odd_matrices.hpp"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

namespace tersum::tests {

//! @brief Every round of a codec's exchanges of odd matrices, aligned and not, then with values that are not finite.
template <class Element, class Codec>
void compare_matrices(Codec const& codec)
{
  static bucket const square{{{512, 512}}};
  if (is_exchange_profiled<Element>(codec, square.gradient())) { return; }
  for (bool const misaligned : {false, true}) {
    compare_executors<Codec, Element>({.codec           = codec,
                                       .gradient        = odd_matrices().gradient(),
                                       .world           = 3,
                                       .steps           = 4,
                                       .misaligned      = misaligned,
                                       .non_finite_step = misaligned ? 2 : -1});
  }
}

//! @brief The mean and the state after exchanges of odd matrices whose factors have a codec of their own.
template <class Codec>
void compare_factors(Codec const& codec)
{
  layout const gradients = odd_matrices().gradient();
  stream const on;
  loopback_ranks<Codec> device{cuda_executor{on.get()}, codec, gradients, 3};
  loopback_ranks<Codec, cpu_executor, host_buffer> host{{}, codec, gradients, 3};
  exchange_trace got, want;
  for (int step = 0; step < 3; ++step) {
    device.fill(step);
    host.fill(step);
    REQUIRE(device.exchange() == status{});
    REQUIRE(host.exchange() == status{});
    device.record(got, step);
    host.record(want, step);
  }
  CHECK(difference(got, want) == "");
}

}  // namespace tersum::tests
