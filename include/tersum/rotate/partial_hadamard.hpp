// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The randomized Hadamard transform of each chunk: the partial rotation of the HotNets'24 paper.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/rotate/hadamard.hpp>

namespace tersum::inline v0 {

//! @brief Multiplies a chunk of `Size` by random signs and by the orthonormal Hadamard matrix.
//!
//! The signs are new in every step and the same on every rank. After the rotation the coordinates of a chunk are close
//! to normal, whatever they were before, so one quantization step suits all of them. One kernel rotates and quantizes,
//! so the chunk must fit shared memory, with 4.625 bytes per coordinate. A chunk of 32768 takes 148 KiB, which GPUs of
//! sm_80, sm_90 and sm_100 have, but not those of sm_86 and sm_89 (99 KiB). Source: Han et al., Beyond Throughput and
//! Compression Ratios (HotNets'24), section 3.2.
//! @tparam Size  Coordinates in a rotation, a power of two from 128 to 32768; equal to the chunk.
template <int Size>
struct partial_hadamard {
  static_assert(Size >= 128 && Size <= 32768 && (Size & (Size - 1)) == 0,
                "tersum: partial_hadamard<Size> needs a power of two from 128 to 32768");
  template <int Chunk>
  using packed                       = block_hadamard<Chunk>;  //!< The same in registers.
  static constexpr int rotation_size = Size;
  static constexpr int square_gain   = Size;  //!< Neither way is normalized.
  constexpr description describe() const { return {"partial_hadamard", Size}; }

  //! @name Plain form
  //! @{
  template <class Group>
  TERSUM_HOST_DEVICE void forward(Group const& g,
                                  float (&x)[detail::extent(Size)],
                                  float (&)[detail::extent(Size)],
                                  rotation_key const& key) const
  {
    hadamard_forward(g, x, key);
  }
  template <class Group>
  TERSUM_HOST_DEVICE void backward(Group const& g,
                                   float (&x)[detail::extent(Size)],
                                   float (&)[detail::extent(Size)],
                                   rotation_key const& key) const
  {
    hadamard_backward(g, x, key);
  }
  //! @}
};

static_assert(rotator<partial_hadamard<1024>>, "tersum: must model tersum::rotator");

}  // namespace tersum::inline v0
