// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How a block finds its matrix, and moves rows of it and of factors between memory and registers: kernel body parts.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_items.hpp>
#include <tersum/lowrank/detail/block_product.hpp>
#include <tersum/lowrank/detail/factor_args.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The number of the matrix that a block works on: the last one with first(matrix) <= number.
template <class Codec, class Element, class First>
[[nodiscard]] TERSUM_BODY std::uint64_t find_matrix(exchange_args<Codec, Element> const& args,
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

//! @brief Up to eight values of one row of a matrix, with what feedback kept; zeros beyond the row.
//! @tparam Multiplied  Whether they are those of products: see `gradient_of`.
template <bool Multiplied, class Codec, class Element, class Context>
TERSUM_BODY void load_values(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             std::uint64_t at,
                             int count,
                             float (&v)[8])
{
  load_some(ctx, args.gradient + at, count, v);
  if constexpr (feeds_back<Codec>) {
    float kept[8];
    load_some(ctx, args.residual + at, count, kept);
    context_arithmetic<Context> const math{};
    float const weight = weight_of_kept(args);
    TERSUM_UNROLL
    for (int i = 0; i < 8; ++i) {
      float const value = gradient_of<Multiplied, typename Codec::wire_element>(math, v[i]);
      v[i] = args.codec.feedback.before(math, value, weighed<Codec>(math, weight, kept[i]));
    }
  }
}

//! @brief Stores up to eight values of one row of a matrix: floats, or means that are rounded to finite elements.
template <class Element, class Context>
TERSUM_BODY void store_values(Context const& ctx, Element* to, int count, float const (&v)[8])
{
  if (count == 8 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    auto* const vector = reinterpret_cast<word4*>(to);
    if constexpr (sizeof(Element) == 4) {
      ctx.store_global(
        vector,
        {Context::bits(v[0]), Context::bits(v[1]), Context::bits(v[2]), Context::bits(v[3])});
      ctx.store_global(
        vector + 1,
        {Context::bits(v[4]), Context::bits(v[5]), Context::bits(v[6]), Context::bits(v[7])});
    } else {
      ctx.store_global(vector,
                       {Context::template pack_finite<Element>(v[0], v[1]),
                        Context::template pack_finite<Element>(v[2], v[3]),
                        Context::template pack_finite<Element>(v[4], v[5]),
                        Context::template pack_finite<Element>(v[6], v[7])});
    }
  } else {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      if (j < count) { ctx.store(to + j, Context::template finite_element<Element>(v[j])); }
    }
  }
}

}  // namespace tersum::inline v0::detail
