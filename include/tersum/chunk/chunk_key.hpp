// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a chunker that chooses is told about a chunk besides its energy.

#pragma once

#include <cstdint>

namespace tersum::inline v0 {

//! @brief What a chunker that chooses is told about a chunk besides its energy: the same on every rank.
struct chunk_key {
  std::uint64_t chunk  = 0;  //!< Its number in the gradient.
  std::uint64_t step   = 0;  //!< Exchanges made with this state.
  std::uint64_t random = 0;  //!< A random number of the step.
};

}  // namespace tersum::inline v0
