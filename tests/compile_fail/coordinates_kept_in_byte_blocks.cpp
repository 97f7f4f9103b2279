// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals in blocks where a coordinate is a chunk.
// expected: tersum: residuals in byte_blocks are for chunks of a multiple of 32 coordinates: others take bfloat16

#include <tersum/baseline/top_coordinates.hpp>
#include <tersum/feedback/kept_in.hpp>
#include <tersum/plan.hpp>

using codec = tersum::top_coordinates_codec<tersum::kept_in<tersum::byte_blocks>>;

auto const bytes = codec{}.plan(tersum::layout{1}, {.size = 1, .rank = 0}).state_bytes();
