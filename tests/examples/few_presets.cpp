// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The sources of examples/shared_library as one file, with TERSUM_C_FEW_PRESETS: headers are read once.

#include "../../examples/shared_library/choosing_presets.cpp"
#include "../../examples/shared_library/low_rank_presets.cpp"
#include "../../examples/shared_library/sharded_presets.cpp"
#include "../../examples/shared_library/summed_presets.cpp"
#include "../../examples/shared_library/tersum_c.cpp"
#include "../../examples/shared_library/two_shot_presets.cpp"
