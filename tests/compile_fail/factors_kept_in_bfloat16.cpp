// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals in bfloat16 under factors.
// expected: tersum: a low_rank_codec keeps its residual in float

#include <tersum/feedback/kept_in.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>

using feedback = tersum::kept_in<tersum::bfloat16>;

tersum::low_rank_codec<tersum::low_rank<4>, float, tersum::low_rank_schedule::paired, feedback>
  codec;
