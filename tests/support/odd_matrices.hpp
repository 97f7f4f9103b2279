// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The bucket on which back ends are compared for low-rank codecs.

#pragma once

#include "exchange_fixture.hpp"

namespace tersum::tests {

//! @brief Matrices of one block of 64 and of several, with tails, wide and tall, of few rows, at odd offsets; bypassing.
[[nodiscard]] inline bucket const& odd_matrices()
{
  static bucket const all{
    {{70, 64}, {1, 77}, {129, 40}, {3, 9}, {33, 200}, {50, 1}, {2, 66}, {64, 300}, {260, 12}}};
  return all;
}

}  // namespace tersum::tests
