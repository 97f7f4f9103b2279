// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals in blocks where coordinates are cast.
// expected: tersum: residuals in byte_blocks are for codec, two_shot_codec, sharded_codec and summed_shards_codec: others take bfloat16

#include <tersum/cast_codec.hpp>
#include <tersum/chunk/top_chunks.hpp>
#include <tersum/feedback/kept_in.hpp>
#include <tersum/plan.hpp>

using codec =
  tersum::cast_codec<tersum::half, tersum::top_chunks<64>, tersum::kept_in<tersum::byte_blocks>>;

auto const bytes = codec{}.plan(tersum::layout{1}, {.size = 1, .rank = 0}).state_bytes();
