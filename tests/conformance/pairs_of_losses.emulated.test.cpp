// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

#include "conformance/all_pairs.hpp"

using namespace tersum::tests::pairs;

TEST_CASE("[conformance] feedback goes with forms, coders and metrics, or says why not")
{
  try_roles<of_losses, of_rounds>(feedbacks{}, forms{});
  try_roles<of_losses, of_coding>(feedbacks{}, coders{});
  try_roles<of_losses, of_units>(feedbacks{}, metrics{});
}
