// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every coordinate travels, in chunks of one size.

#pragma once

#include <tersum/concepts.hpp>

namespace tersum::inline v0 {

//! @brief Cuts each tensor into chunks of `Size` coordinates; the last one is padded with zeros.
//!
//! A chunk has one step, which the ranks agree on. The padding travels too, because after a rotation it carries signal.
//! @tparam Size  A power of two from 128 to 32768.
template <int Size>
struct fixed_chunks {
  static_assert(Size >= 128 && Size <= 32768 && (Size & (Size - 1)) == 0,
                "tersum: fixed_chunks<Size> needs a power of two from 128 to 32768");
  static constexpr int chunk_size = Size;  //!< Coordinates in a chunk.
  constexpr description describe() const { return {"fixed_chunks", Size}; }
};

static_assert(chunker<fixed_chunks<1024>>, "tersum: must model tersum::chunker");

}  // namespace tersum::inline v0
