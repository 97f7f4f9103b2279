// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The comparison of codecs whose policies have different forms of the same algorithms.

#pragma once

#include "support/compare_kernels.hpp"

#include <doctest/doctest.h>

namespace tersum::tests {

//! @brief Checks that two codecs send and keep the same bytes on the CPU, and that the first does so in kernels, too: aligned
//! chunks and others, a tail, a step that is not finite.
template <class Element = float, class Mine, class Reference>
void compare_forms(Mine const& mine, Reference const& reference, int world = 2)
{
  constexpr auto coordinates = static_cast<std::uint64_t>(5 * Mine::chunk_size + 77);
  for (bool const misaligned : {false, true}) {
    int const bad_step = misaligned ? 1 : -1;
    exchange_case<Mine, Element> const own{.codec           = mine,
                                           .gradient        = {.coordinates = coordinates},
                                           .world           = world,
                                           .misaligned      = misaligned,
                                           .non_finite_step = bad_step};
    exchange_case<Reference, Element> const other{.codec           = reference,
                                                  .gradient        = {.coordinates = coordinates},
                                                  .world           = world,
                                                  .misaligned      = misaligned,
                                                  .non_finite_step = bad_step};
    CAPTURE(own);
    CHECK(difference(record_reference(own), record_reference(other)) == "");
    compare_kernels(own);
  }
}

}  // namespace tersum::tests
