// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One codec of each kind: what is always tried. See codecs_a.cpp.

#include "ranks_of.hpp"

#include <tersum/presets.hpp>
#include <tersum/sharded_presets.hpp>
#include <tersum_baselines/presets.hpp>

namespace tersum::tests {

TERSUM_TRY(allocated_2_ef, float);
TERSUM_TRY(values_4_ef, float);

}  // namespace tersum::tests
