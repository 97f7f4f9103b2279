// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a consumer compares the library with, by the target tersum::baselines.

#include <tersum_baselines/tersum_baselines.hpp>

std::size_t const bytes =
  tersum::presets::topk_b2.plan(tersum::layout{4096}, {.size = 2, .rank = 0}).wire_bytes();
