// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What kernels of an exchange of factors are given besides what all are.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/lowrank/matrix_record.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

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
template <class Product, class Arithmetic>
[[nodiscard]] TERSUM_INLINE float random_start(Arithmetic const&,
                                               std::uint64_t const& seed,
                                               std::uint64_t at,
                                               std::uint64_t turns)
{
  philox_block const draw = philox4x32<7, Product>({{static_cast<std::uint32_t>(at),
                                                     static_cast<std::uint32_t>(at >> 32),
                                                     static_cast<std::uint32_t>(turns),
                                                     0x6c6f7772u}},
                                                   seed);
  return Arithmetic::multiply(static_cast<float>(static_cast<std::int32_t>(draw.word[0])),
                              0x1p-31f);
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

//! @brief The product of a turn of one matrix.
//! @param from  The factors of the other turn.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE auto product_of(exchange_args<Codec, Element> const& args,
                                            matrix_record const& m,
                                            int turn,
                                            float const* from)
{
  auto const& parts = args.parts;
  return matrix_product<typename Codec::wire_element>{
    .from          = from + m.slot[1 - turn],
    .offset        = m.offset,
    .rows          = m.rows,
    .columns       = m.columns,
    .length        = m.length(turn),
    .rank          = m.rank,
    .of_rows       = m.sends_rows(turn),
    .slices        = m.slices(turn),
    .to            = parts.wire[turn] + m.slot[turn],
    .sums          = parts.factor[agrees<Codec> ? turn : 1] + m.slot[turn],
    .partials      = parts.partials,
    .first_partial = m.first_partial[turn],
    .largest       = parts.largest};
}

}  // namespace tersum::inline v0::detail
