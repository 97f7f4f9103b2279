// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks get different numbers of bits, by their norms.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

template <int First, int... Rest>
[[nodiscard]] constexpr bool ascends() noexcept
{
  int last    = First;
  bool result = true;
  ((result = result && last < Rest, last = Rest), ...);
  return result;
}

}  // namespace detail

//! @brief Gives each chunk one of the widths, so that the sum of energy^weighting times distortion is least under a budget.
//!
//! The energy is the reduced squared norm times `tensor::weight`. The distortion is what the codec's reducer says of that width and number
//! of ranks (`saturating_sum::distortion`). For every chunk, each step from one width to the next lowers the error by some gain per bit.
//! The steps with the largest gains are taken until the budget is spent; equal ones take turns from exchange to exchange. That is the
//! optimum of the Lagrangian, up to the last step. All arithmetic but the weight's is on integers (the bits of a float are its logarithm,
//! within .086), so that every rank and every executor makes the same choice.
//!
//! The payload is one array, whose size the budget alone decides. The chunks of one width lie together, the widest
//! first, each with its own lanes. Where one width ends and the next begins is known after the agreement, on every rank.
//! Under `two_shot` the chunks are dealt to the ranks in that order.
//!
//! @tparam Size    Coordinates in a chunk, a power of two from 128 to 8192.
//! @tparam Widths  Bits of a code, ascending: 1 to 16 of two shots and gathered codes; 2, 4 or 8 in lanes. Chunks may have 0.
template <int Size, int... Widths>
struct allocated_chunks {
  static_assert(Size >= 128 && Size <= 8192 && (Size & (Size - 1)) == 0,
                "tersum: allocated_chunks<Size, ...> needs a power of two from 128 to 8192");
  static_assert(
    sizeof...(Widths) >= 1 && sizeof...(Widths) <= 7 && ((Widths >= 1 && Widths <= 16) && ...),
    "tersum: allocated_chunks<Size, Widths...> has up to 7 widths of 1 to 16 bits; none is always allowed");
  static_assert(detail::ascends<Widths...>(), "tersum: the widths of allocated_chunks must ascend");
  constexpr description describe() const
  {
    return {"allocated_chunks", Size, Widths..., bits, weighting};
  }

  static constexpr int chunk_size    = Size;  //!< Coordinates in a chunk.
  static constexpr bool by_norm      = true;
  static constexpr int level_count   = sizeof...(Widths);  //!< Widths, without that of no bits.
  static constexpr bool several_bits = true;
  static constexpr int widths[detail::extent(level_count)] = {Widths...};

  float bits = 4;  //!< Bits per coordinate that does not bypass, norms included: never exceeded.
  float weighting =
    1;  //!< Exponent of the energy, 0 to 1: 1 for least error; less is kinder to small chunks.

  //! @brief What is compared: the energy.
  [[nodiscard]] TERSUM_HOST_DEVICE std::uint32_t score(std::uint32_t energy,
                                                       chunk_key const&) const noexcept
  {
    return energy;
  }
};

static_assert(selecting_chunker<allocated_chunks<256, 2, 4, 8>>,
              "tersum: must model tersum::selecting_chunker");

}  // namespace tersum::inline v0
