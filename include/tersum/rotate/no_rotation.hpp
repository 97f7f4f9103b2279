// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks are quantized as they are.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/block_hadamard.hpp>

namespace tersum::inline v0 {

//! @brief Leaves a chunk in its own basis. It costs nothing, and loses much where few coordinates hold most of the energy.
struct no_rotation {
  template <int Chunk>
  using packed                       = block_hadamard<Chunk, false>;
  static constexpr int rotation_size = 1;
  constexpr description describe() const { return {"no_rotation"}; }

  //! @name Plain form
  //! @{
  template <class Group, std::size_t Size>
  TERSUM_HOST_DEVICE void forward(Group const&,
                                  float (&)[Size],
                                  float (&)[Size],
                                  rotation_key const&) const
  {
  }
  template <class Group, std::size_t Size>
  TERSUM_HOST_DEVICE void backward(Group const&,
                                   float (&)[Size],
                                   float (&)[Size],
                                   rotation_key const&) const
  {
  }
  //! @}
};

static_assert(rotator<no_rotation>, "tersum: must model tersum::rotator");

}  // namespace tersum::inline v0
