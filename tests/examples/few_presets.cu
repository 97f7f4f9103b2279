// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! few_presets.cpp for the host and for CUDA.

#include "../../examples/shared_library/choosing_presets.cu"
#include "../../examples/shared_library/low_rank_presets.cu"
#include "../../examples/shared_library/sharded_presets.cu"
#include "../../examples/shared_library/summed_presets.cu"
#include "../../examples/shared_library/two_shot_presets.cu"
#include "few_presets.cpp"
