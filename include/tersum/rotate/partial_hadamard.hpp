// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The randomized Hadamard transform of each chunk: the partial rotation of the HotNets'24 paper. Its plain form, in memory, is
//! written once for all groups, in pieces for rotations of one's own.

#pragma once

#include <tersum/block/chunk_order.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/block_hadamard.hpp>

namespace tersum::inline v0 {

//! @brief Flips the signs of the coordinates whose bits are 1: those that `chunk_order` names. The group then synchronizes.
template <class Group, std::size_t Size>
TERSUM_INLINE void flip_signs(Group const& g, float (&x)[Size], rotation_key const& key)
{
  constexpr int size = static_cast<int>(Size);
  g.each(size / 32, [&](int w) {
    std::uint32_t const word = key.template word<size>(w);
    for (int bit = 0; bit < 32; ++bit) {
      int const at = bit / 8 * (size / 4) + 8 * w + bit % 8;
      x[at] = detail::bits_float(detail::float_bits(x[at]) ^ (word << (31 - bit) & 0x80000000u));
    }
  });
  g.sync();
}

//! @brief Sums and differences of the coordinates whose numbers differ in bits First to Last-1, ascending. The group
//! synchronizes after each bit.
template <int First, int Last, class Group, std::size_t Size>
TERSUM_INLINE void butterflies(Group const& g, float (&x)[Size])
{
  constexpr int size = static_cast<int>(Size);
  for (int bit = First; bit < Last; ++bit) {
    g.each(size / 2, [&](int i) {
      int const low  = i & ((1 << bit) - 1);
      int const at   = (i - low) * 2 + low;
      int const pair = at + (1 << bit);
      float const a  = x[at];
      float const b  = x[pair];
      x[at]          = Group::add(a, b);
      x[pair]        = Group::subtract(a, b);
    });
    g.sync();
  }
}

//! @brief Multiplies a chunk of `Size` by random signs and by the orthonormal Hadamard matrix.
//!
//! The signs are new in every step and the same on every rank. After the rotation the coordinates of a chunk are close to normal, whatever
//! they were before, so one quantization step suits all of them. One kernel rotates and quantizes, so the chunk must fit shared memory,
//! with 4.625 bytes per coordinate. A chunk of 32768 takes 148 KiB, which GPUs of sm_80, sm_90 and sm_100 have, but not those of sm_86 and
//! sm_89 (99 KiB). Source: Han et al., Beyond Throughput and Compression Ratios (HotNets'24), section 3.2.
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

  //! @name Plain form, unnormalized: squared norms grow `Size` times
  //! The order of the butterflies fixes the rounding and is part of the wire format.
  //! @{
  //! Signs, then index bits 0, 1, 2, the two highest, then 8 upwards, then 3 to 7.
  template <class Group>
  TERSUM_HOST_DEVICE void forward(Group const& g,
                                  float (&x)[detail::extent(Size)],
                                  float (&)[detail::extent(Size)],
                                  rotation_key const& key) const
  {
    flip_signs(g, x, key);
    butterflies<0, 3>(g, x);
    butterflies<log - 2, log>(g, x);
    butterflies<8, log - 2>(g, x);
    butterflies<3, detail::minimum(8, log - 2)>(g, x);
  }
  //! The inverse: bits 3 to 7, then 8 upwards, then 0, 1, 2 and the two highest, then signs.
  template <class Group>
  TERSUM_HOST_DEVICE void backward(Group const& g,
                                   float (&x)[detail::extent(Size)],
                                   float (&)[detail::extent(Size)],
                                   rotation_key const& key) const
  {
    butterflies<3, detail::minimum(8, log - 2)>(g, x);
    butterflies<8, log - 2>(g, x);
    butterflies<0, 3>(g, x);
    butterflies<log - 2, log>(g, x);
    flip_signs(g, x, key);
  }
  //! @}

 private:
  static constexpr int log = detail::log2_exact(Size);
};

static_assert(rotator<partial_hadamard<1024>>, "tersum: must model tersum::rotator");

}  // namespace tersum::inline v0
