// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

#include "conformance/all_pairs.hpp"

using namespace tersum::tests::pairs;

TEST_CASE(
  "[conformance] metrics go with forms, coders and rotators, and coders with forms, or say why not")
{
  try_roles<of_units, of_rounds>(metrics{}, forms{});
  try_roles<of_units, of_coding>(metrics{}, coders{});
  try_roles<of_units, of_rotation>(metrics{}, rotators{});
  try_roles<of_coding, of_rounds>(coders{}, forms{});
}
