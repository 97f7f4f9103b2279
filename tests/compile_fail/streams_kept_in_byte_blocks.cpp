// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Residuals in blocks where codes have unlike lengths.
// expected: tersum: residuals in byte_blocks are for codec, two_shot_codec, sharded_codec and summed_shards_codec: others take bfloat16

#include <tersum/entropy_codec.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/feedback/kept_in.hpp>
#include <tersum/plan.hpp>

using feedback = tersum::kept_in<tersum::byte_blocks, tersum::kept_by_ranks<>>;
using codec    = tersum::entropy_two_shot_codec<feedback>;

auto const bytes = codec{}.plan(tersum::layout{1}, {.size = 1, .rank = 0}).state_bytes();
