// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

#include "conformance/all_pairs.hpp"

using namespace tersum::tests::pairs;

TEST_CASE("[conformance] forms go with coders, feedback and metrics, or say why not")
{
  try_roles<of_coding, of_rounds>(coders{}, forms{});
}
