// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the random part of a chunk's rotation is made from.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/random/sign_bits.hpp>

namespace tersum::inline v0 {

//! @brief What the random part of a chunk's rotation is made from: the same on every rank, new in every step.
struct rotation_key {
  std::uint64_t step  = 0;  //!< `sign_key(step, seed)`.
  std::uint64_t chunk = 0;  //!< The chunk's number on the wire.

  //! @brief Thirty-two random bits, of which a chunk of `Size` has Size/32 different ones.
  //! @param i  From 0 to Size/32 - 1.
  template <int Size>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t word(int i) const noexcept
  {
    return sign_bits(chunk * (Size / 32) + static_cast<unsigned>(i), step);
  }
};

}  // namespace tersum::inline v0
