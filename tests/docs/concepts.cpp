// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/concepts.md.

#include "../examples/your_own/sign_quantizer.hpp"

#include <tersum/tersum.hpp>

// code 1

static_assert(codec.range.clip == .8f);
static_assert(codec.plan({.coordinates = 1}, {.size = 127, .rank = 0}).check().ok());
static_assert(!codec.plan({.coordinates = 1}, {.size = 128, .rank = 0}).check().ok());
