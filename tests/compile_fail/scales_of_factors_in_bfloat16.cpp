// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Scales in bfloat16 under factors.
// expected: tersum: a low_rank_codec keeps its scales in float

#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/metric/diagonal.hpp>

tersum::low_rank_codec<tersum::low_rank<4>,
                       float,
                       tersum::low_rank_schedule::paired,
                       tersum::error_feedback,
                       tersum::kept_diagonal_in<tersum::bfloat16>>
  codec;
