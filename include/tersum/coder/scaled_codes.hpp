// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes with scales of their own, which are decoded to be added.

#pragma once

#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>

namespace tersum::inline v0 {

//! @brief Every rank's chunk has a scale of its own, which travels with its codes; so the ranks agree on nothing, and codes of
//! two ranks cannot be added. For `two_shot`, `gather`, `shard` and `publish`.
//! @tparam Quantizer  `lloyd_max<q>` under a rotator of whole chunks, or a quantizer of blocks under `no_rotation`. Under
//!                    `allocated_chunks` any width of it, up to 16 bits.
template <part_quantizer Quantizer>
requires(!conversion<Quantizer>) struct scaled_codes {
  using quantizer_type = Quantizer;
  constexpr description describe() const { return {"scaled_codes", quantizer}; }

  Quantizer quantizer{};

  //! The same with codes of `Bits`.
  template <int Bits>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto with_bits() const noexcept
  {
    return scaled_codes<typename Quantizer::template with_bits<Bits>>{};
  }
};

}  // namespace tersum::inline v0
