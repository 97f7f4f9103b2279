// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks are quantized as they are.

#pragma once

#include <tersum/concepts.hpp>

namespace tersum::inline v0 {

//! @brief Leaves a chunk in its own basis. It costs nothing, and gives large errors where a few coordinates of a chunk hold
//! most of its energy.
struct no_rotation {
  static constexpr int rotation_size = 1;
};

static_assert(rotator<no_rotation>, "tersum: must model tersum::rotator");

}  // namespace tersum::inline v0
