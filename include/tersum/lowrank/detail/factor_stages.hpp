// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What stages of an exchange of factors are given besides what all are, and what they do with the factors of a matrix that a group of
//! threads has in hand: `block_hand`, or `host_hand` of one thread.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/lowrank/matrix_record.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

#include <math.h>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Magnitudes from which feedback takes a gradient for one that is not finite when its matrix is multiplied.
//!
//! Each rank keeps its gradient without the mean of all, so that what one has alone stays in the residuals of all of them, and
//! cancels there up to rounding. None may be cut by itself, therefore, and none ever has to be.
template <class Wire>
inline constexpr float multiplied_below = minimum(sendable_below<Wire>, 0x1p40f);

//! @brief A gradient as feedback is given it: the same to the last bit; where it is multiplied infinity from there on.
template <bool Multiplied, class Wire, class Arithmetic>
[[nodiscard]] TERSUM_INLINE float gradient_of(Arithmetic const&, float value)
{
  constexpr float limit = multiplied_below<Wire>;
  float const above     = Arithmetic::multiply(value, 0x1p127f / limit * 2);
  return Multiplied ? Arithmetic::multiply(above, limit * 0x1p-128f) : value;
}

//! @brief An element of a column of the warm start that is zeros, in [-1, 1): the same on all ranks, new in each turn.
//! @param at  The element among all of the warm start.
template <class Hand>
[[nodiscard]] TERSUM_INLINE float random_start(Hand const& hand,
                                               std::uint64_t const& seed,
                                               std::uint64_t at,
                                               std::uint64_t turns)
{
  philox_block const draw =
    philox4x32<7, typename Hand::product>({{static_cast<std::uint32_t>(at),
                                            static_cast<std::uint32_t>(at >> 32),
                                            static_cast<std::uint32_t>(turns),
                                            0x6c6f7772u}},
                                          seed);
  return hand.multiply(static_cast<float>(static_cast<std::int32_t>(draw.word[0])), 0x1p-31f);
}

//! @brief Factors of matrices in the caller's memory. They lie column after column, matrix after matrix.
template <class Wire>
struct factor_args {
  float* warm;              // what the next exchange starts from
  std::uint32_t* poisoned;  // one a matrix: whether a reduced factor is not finite
  Wire* wire[2];            // P and Q; both the payload when alternating
  float* factor[2];  // P and Q in float; alternating: what the turn starts from and what it sends
  float* partials;   // sums of slices
  std::uint64_t elements;  // of the payload
  matrix_record end;       // where another matrix would begin: counts of all
  float largest;           // of what feedback sends as a 16-bit factor: see largest_summand
};

//! @brief The turn whose factor this exchange sends last.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE int turn_of(exchange_args<Codec, Element> const& args)
{
  return agrees<Codec> ? 1 : static_cast<int>(args.table[0].turns % 2);
}

//! @brief The number of the matrix that a block of work belongs to: the last one with first(matrix) <= number.
TERSUM_EXEC_CHECK_DISABLE
template <class Codec, class Element, class First>
[[nodiscard]] TERSUM_INLINE std::uint64_t find_matrix(exchange_args<Codec, Element> const& args,
                                                      std::uint64_t number,
                                                      First const& first)
{
  std::uint64_t low = 0, high = args.chunks;
  while (high - low > 1) {
    std::uint64_t const middle = (low + high) / 2;
    if (first(args.table[middle]) <= number) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

//! @brief What of a gradient and of what feedback kept is approximated.
//! @tparam Multiplied  Whether it is an element of a product: see `gradient_of`.
template <bool Multiplied, class Codec, class Element, class Arithmetic>
[[nodiscard]] TERSUM_INLINE float element_of_matrix(Arithmetic const& math,
                                                    exchange_args<Codec, Element> const& args,
                                                    float gradient,
                                                    float kept)
{
  if constexpr (feeds_back<Codec>) {
    return args.codec.feedback.before(
      math,
      gradient_of<Multiplied, typename Codec::quantizer_type::element>(math, gradient),
      weighed<Codec>(math, weight_of_kept(args), kept));
  }
  return gradient;
}

//! @brief What feedback keeps of it, where so much is sent.
template <class Codec, class Element, class Arithmetic>
[[nodiscard]] TERSUM_INLINE float rest_of_matrix(Arithmetic const& math,
                                                 exchange_args<Codec, Element> const& args,
                                                 float whole,
                                                 float sent,
                                                 float kept)
{
  if constexpr (feeds_back<Codec>) {
    return kept_of_matrix(
      args.codec.feedback.after(math,
                                whole,
                                Arithmetic::subtract(whole, sent),
                                weighed<Codec>(math, weight_of_kept(args), kept)));
  }
  return kept;
}

//! @brief Says that a factor of a matrix is not finite.
template <class Codec, class Element>
TERSUM_INLINE void poison(exchange_args<Codec, Element> const& args, std::uint64_t matrix)
{
  store_from_several(args.parts.poisoned + matrix, 1u);
  raise_flag(args);
}

//! @brief Calls body(i) for every `Step`th i below count from `first` on, so that as many threads share them.
TERSUM_EXEC_CHECK_DISABLE
template <unsigned Step, class Body>
TERSUM_INLINE void each_of(unsigned first, std::uint64_t count, Body const& body)
{
  TERSUM_NO_UNROLL
  for (std::uint64_t i = first; i < count; i += Step) { body(i); }
}

//! @brief Fills the columns of the warm start that are zero with random numbers, the same on all ranks. Paired, all get unit
//! length. A warp takes a column at a time.
TERSUM_EXEC_CHECK_DISABLE
template <class Codec, class Element, class Hand>
TERSUM_INLINE void refresh_warm(Hand const& hand,
                                exchange_args<Codec, Element> const& args,
                                matrix_record const& m,
                                int turn,
                                std::uint64_t turns)
{
  constexpr unsigned lanes   = minimum(Hand::size(), 32u);
  std::uint64_t const length = m.length(turn);
  unsigned const rank = m.rank, lane = hand.rank() % lanes;
  for (unsigned k = hand.rank() / lanes; k < rank; k += Hand::size() / lanes) {
    std::uint64_t const slot = m.slot[turn] + k * length;
    float* const column      = args.parts.warm + slot;
    double square            = hand.square(column, length);
    if (!(square > zero_below)) {
      each_of<lanes>(lane, length, [&](std::uint64_t i) {
        column[i] = random_start(hand, args.header->seed, slot + i, turns);
      });
      hand.sync_lanes();
      square = hand.square(column, length);
    }
    if (agrees<Codec> && square > zero_below) {
      double const factor = 1.0 / ::sqrt(square);
      each_of<lanes>(lane, length, [&](std::uint64_t i) {
        column[i] = static_cast<float>(factor * static_cast<double>(column[i]));
      });
    }
  }
}

//! @brief Makes what arrived the next warm start, unless a value was not finite.
TERSUM_EXEC_CHECK_DISABLE
template <class Codec, class Element, class Hand>
TERSUM_INLINE void keep_warm(Hand const& hand,
                             exchange_args<Codec, Element> const& args,
                             matrix_record& m)
{
  if (step_is_poisoned(args)) { return; }
  std::uint64_t const turns = m.turns;
  int const turn            = agrees<Codec> ? 1 : static_cast<int>(turns % 2);
  float* const warm         = args.parts.warm + m.slot[turn];
  float const* const now    = args.parts.factor[1] + m.slot[turn];
  each_of<Hand::size()>(
    hand.rank(), m.rank * m.length(turn), [&](std::uint64_t i) { warm[i] = now[i]; });
  hand.sync();
  if (hand.rank() == 0) { m.turns = turns + 1; }
  refresh_warm(hand, args, m, turn, turns + 1);
}

}  // namespace tersum::inline v0::detail
