// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/low_rank.md.

#include <tersum/presets.hpp>

#include <vector>

void plan_it()
{
  constexpr std::uint64_t coordinates = 4096 * 1024;
  // code 1
  static_cast<void>(plan.wire_bytes());
}

// code 2

static_assert(tersum::in_metric<factors>);
