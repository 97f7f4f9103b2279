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

}  // namespace tersum::tests
