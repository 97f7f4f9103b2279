// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The chunks with the largest norms travel, the others do not: TopKC.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief The ranks sum the squared norm of each chunk, and the J chunks with the largest sums travel.
//!
//! J is as large as `bits` pays for. With d coordinates, and payload and norms of 16 bits, bits = 16 (J Size / d + 1 / Size).
//! Chunks with equal sums take turns. A norm that is not finite counts as infinite, so its chunk travels and all ranks see it.
//! The selection is the same on every rank, because the sums are. Chunks that do not travel decode to zeros, and feedback keeps
//! them. Source: Han et al., Beyond Throughput and Compression Ratios (HotNets'24), section 3.1.
//!
//! @tparam Size    Coordinates in a chunk, a power of two from 32 to 8192 (from 128 under codes of less than 16 bits).
//! @tparam Scalar  A norm on the wire, if the codec has no range of its own: float or bfloat16. Not half,
//!                 because squares underflow and overflow there.
template <int Size, class Scalar = bfloat16>
struct top_chunks {
  static_assert(Size >= 32 && Size <= 8192 && (Size & (Size - 1)) == 0,
                "tersum: top_chunks<Size> needs a power of two from 32 to 8192");
  static_assert(!std::is_same_v<Scalar, half>,
                "tersum: squared norms underflow and overflow in half: use float or bfloat16");
  using scalar = Scalar;
  constexpr description describe() const { return {"top_chunks", Size, Scalar{}, bits}; }

  static constexpr int chunk_size    = Size;   //!< Coordinates in a chunk.
  static constexpr bool by_norm      = true;   //!< The choice needs the agreed norms.
  static constexpr int level_count   = 1;      //!< A chunk travels or not.
  static constexpr bool several_bits = false;  //!< All that travel have the same width.

  float bits = 2;  //!< Bits per coordinate that does not bypass, norms included: never exceeded.

  //! @brief What is compared: the energy.
  [[nodiscard]] TERSUM_HOST_DEVICE std::uint32_t score(std::uint32_t energy,
                                                       chunk_key const&) const noexcept
  {
    return energy;
  }
};

static_assert(selecting_chunker<top_chunks<128>>, "tersum: must model tersum::selecting_chunker");

}  // namespace tersum::inline v0
