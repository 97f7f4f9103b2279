// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is tried besides codecs_a.cpp and codecs_b.cpp where TERSUM_FUZZ_ALL_CODECS is on: low-rank factors of other ranks.

#include "ranks_of.hpp"

#include <tersum/presets.hpp>

namespace tersum::tests {

TERSUM_TRY(powersgd_r1, float);
TERSUM_TRY(powersgd_r16, float);
TERSUM_TRY(powersgd_r64, float);

}  // namespace tersum::tests
