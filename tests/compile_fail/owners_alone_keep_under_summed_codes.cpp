// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback of owners alone where parts have no owners.
// expected: tersum: kept_by_owners is for two_shot_codec with fixed_chunks

#include <tersum/cast_codec.hpp>
#include <tersum/chunk/top_chunks.hpp>
#include <tersum/feedback/kept_by.hpp>

using codec = tersum::cast_codec<float, tersum::top_chunks<64>, tersum::kept_by_owners<>>;

auto const size = codec{}.plan({.coordinates = 1000}, {.size = 2, .rank = 0}).state_bytes();
