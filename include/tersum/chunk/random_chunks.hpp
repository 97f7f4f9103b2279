// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A random part of the chunks travels: the baseline that a choice by norms has to beat.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/random/philox.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief As many chunks as `bits` pays for, drawn anew in every step from the common seed. The choice needs no agreement.
//!
//! Chunks that are not drawn decode to zeros, and drawn ones are not scaled up. So the mean is biased, even with feedback.
//! @tparam Size  Coordinates in a chunk, a power of two from 32 to 8192.
template <int Size>
struct random_chunks {
  static_assert(Size >= 32 && Size <= 8192 && (Size & (Size - 1)) == 0,
                "tersum: random_chunks<Size> needs a power of two from 32 to 8192");
  static constexpr int chunk_size    = Size;
  static constexpr bool by_norm      = false;
  static constexpr int level_count   = 1;
  static constexpr bool several_bits = false;
  constexpr description describe() const { return {"random_chunks", Size, bits}; }

  float bits = 2;  //!< Bits per coordinate that does not bypass: never exceeded.

  //! @brief What is compared: a hash, fresh in every step.
  [[nodiscard]] TERSUM_HOST_DEVICE std::uint32_t score(std::uint32_t,
                                                       chunk_key const& key) const noexcept
  {
    return sign_bits(key.chunk, ~key.random) >> 1 | 1u;
  }
};

static_assert(selecting_chunker<random_chunks<128>>,
              "tersum: must model tersum::selecting_chunker");

}  // namespace tersum::inline v0
