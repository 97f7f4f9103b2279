// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A row of eight values a lane, moved an element at a time: kernel body parts.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

namespace tersum::inline v0::detail {

//! @brief Eight neighbours of each of `Lanes` lanes, for arrays that cannot be moved sixteen bytes at a time. An element at a
//! time of its own eight would take a lane to another sector of memory than all other lanes, eight times. So an access moves
//! neighbours, an element of one lane's eight each, and shuffles exchange them. All lanes of the warp must take part.
//!
//! Up to eight lanes, `apart` from each other, exchange among them. In access k a lane moves an element of the k-th of these.
//! Which one differs from lane to lane, so that a shuffle has each lane send and receive one of them.
//! @tparam Lanes  A power of two from 4 to 32. They are consecutive, and begin at a multiple of their number.
template <unsigned Lanes>
struct lane_row {
  static constexpr unsigned width = minimum(Lanes, 8u);  //!< Lanes that exchange.
  static constexpr unsigned apart = Lanes / width;

  //! The lane whose element lane `member` moves in access k.
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned owner(unsigned member, unsigned k) noexcept
  {
    return k % width * apart + member % apart;
  }

  //! Which one of the owner's eight it moves.
  [[nodiscard]] TERSUM_INLINE static constexpr unsigned element(unsigned member,
                                                                unsigned k) noexcept
  {
    return k / width * width + (member / apart ^ k % width);
  }

  //! @brief Lane `member` gets its eight.
  //! @param load  load(owner, element): one of them, a float or a word.
  template <class Context, class Value, class Load>
  TERSUM_BODY static void load(Context const& ctx, unsigned member, Value* v, Load const& load)
  {
    Value moved[8];
    TERSUM_UNROLL
    for (unsigned k = 0; k < 8; ++k) { moved[k] = load(owner(member, k), element(member, k)); }
    turn(member, moved);
    exchange(ctx, moved, v);
  }

  //! @brief Stores each lane's eight.
  //! @param store  store(owner, element, value).
  template <class Context, class Value, class Store>
  TERSUM_BODY static void store(Context const& ctx,
                                unsigned member,
                                Value const* v,
                                Store const& store)
  {
    Value moved[8];
    exchange(ctx, v, moved);
    turn(member, moved);
    TERSUM_UNROLL
    for (unsigned k = 0; k < 8; ++k) { store(owner(member, k), element(member, k), moved[k]); }
  }

 private:
  // Value k goes to the lane whose place among those that exchange differs by k, which sends its value k in turn.
  template <class Context, class Value>
  TERSUM_BODY static void exchange(Context const& ctx, Value const* from, Value* to)
  {
    TERSUM_UNROLL
    for (unsigned k = 0; k < 8; ++k) {
      unsigned const mask = k % width * apart;
      to[k]               = mask == 0 ? from[k] : ctx.shuffle_xor(from[k], mask);
    }
  }

  // Value k changes places with value k ^ place, where place is the lane's among those that exchange.
  template <class Value>
  TERSUM_BODY static void turn(unsigned member, Value (&v)[8])
  {
    TERSUM_UNROLL
    for (unsigned bit = 1; bit < width; bit *= 2) {
      bool const turns = (member / apart & bit) != 0;
      TERSUM_UNROLL
      for (unsigned k = 0; k < 8; ++k) {
        if ((k & bit) != 0) { continue; }
        Value const low  = v[k];
        Value const high = v[k | bit];
        v[k]             = turns ? high : low;
        v[k | bit]       = turns ? low : high;
      }
    }
  }
};

}  // namespace tersum::inline v0::detail
