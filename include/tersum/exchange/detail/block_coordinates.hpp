// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's coordinates of its chunk between global memory and registers: kernel body parts.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/block_load.hpp>
#include <tersum/block/detail/lane_row.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The rows of eight values a lane that a warp moves of a chunk at an edge, one of each quarter.
template <class Codec>
struct edge_rows {
  static constexpr unsigned lanes = lanes_of_chunk<Codec::chunk_size>;
  static constexpr int quarter    = Codec::chunk_size / 4;
  using row                       = lane_row<lanes>;

  unsigned member;  //!< This thread's place among the lanes.
  unsigned begin;   //!< Where the row begins in each quarter.
  int length;       //!< Coordinates that exist in the chunk.

  explicit TERSUM_INLINE edge_rows(own_chunk<Codec> const& mine)
    : member{mine.thread % lanes}, begin{(mine.thread - member) * 8}, length{mine.active
                                                                               ? mine.length
                                                                               : 0}
  {
  }

  //! @brief Eight neighbours, those of quarter r; zeros where there are none. All threads of the warp call it, and `store`.
  //! @param load  load(at): the element so many places after the first one of the quarter, as a float or a word. Neighbouring
  //!              lanes load neighbours.
  template <class Context, class Value, class Load>
  TERSUM_BODY void load(Context const& ctx, int r, Value* v, Load const& load) const
  {
    auto const load_one = [&](unsigned owner, unsigned element) {
      unsigned const at = begin + owner * 8 + element;
      return static_cast<int>(at) < length - r * quarter ? load(at) : Value{};
    };
    row::load(ctx, member, v, load_one);
  }

  //! @brief Writes eight neighbours, those that exist.
  //! @param store  store(at, value): one of them, where `load` has it.
  template <class Context, class Store>
  TERSUM_BODY void store(Context const& ctx, int r, float const* v, Store const& store) const
  {
    auto const store_one = [&](unsigned owner, unsigned element, float value) {
      unsigned const at = begin + owner * 8 + element;
      if (static_cast<int>(at) < length - r * quarter) { store(at, value); }
    };
    row::store(ctx, member, v, store_one);
  }
};

//! @brief Eight neighbours of a thread's coordinates, those of quarter r, of the array in which the chunk begins at `chunk`. At
//! edges all threads of the warp call it.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_eights(
  Context const& ctx, own_chunk<Codec> const& mine, Element const* chunk, int r, float* v)
{
  if constexpr (Edge) {
    edge_rows<Codec> const rows{mine};
    rows.load(ctx, r, v, [&](unsigned at) {
      return Context::value(ctx.load(chunk + at + r * rows.quarter));
    });
  } else {
    load_quarter<false>(ctx, mine, mine.active, chunk, r, v);
  }
}

//! @brief Calls load.operator()<at_edge>(). Where a kernel has chunks of both kinds, a warp loads all of its chunks as edges if one of
//! them is.
//! @tparam Edge, Regular  As `find_chunk` has them.
template <bool Edge, bool Regular, class Codec, class Element, class Context, class Load>
TERSUM_BODY void load_as_edge(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              Load const& load)
{
  if constexpr (Edge && Regular) {
    auto const length = static_cast<std::uint32_t>(mine.length);
    bool const edge   = mine.active && !is_regular(args, mine.offset, length);
    if (ctx.warp_max(edge ? 1u : 0u) != 0) {
      load.template operator()<true>();
    } else {
      load.template operator()<false>();
    }
  } else {
    load.template operator()<Edge>();
  }
}

//! @brief This thread's 32 coordinates in the loaded arrangement, gradient plus residual; zeros where there are none.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_coordinates(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  own_chunk<Codec> const& mine,
                                  float (&v)[32])
{
  [[maybe_unused]] float const weight = weight_of_kept(args);
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    auto const load = [&](auto const* from) {
      if constexpr (feeds_back<Codec>) {
        auto const add = [&](float value, float kept) {
          context_arithmetic<Context> const math{};
          return args.codec.feedback.before(math, value, weighed<Codec>(math, weight, kept));
        };
        auto const* const kept = args.residual + mine.offset;
        if constexpr (Edge) {
          edge_rows<Codec> const rows{mine};
          rows.load(ctx, r, v + 8 * r, [&](unsigned at) {
            return add(Context::value(ctx.load(from + mine.offset + at + r * rows.quarter)),
                       Context::value(ctx.load(kept + at + r * rows.quarter)));
          });
        } else {
          load_quarter<false>(ctx, mine, mine.active, from + mine.offset, r, v + 8 * r, kept, add);
        }
      } else {
        load_eights<Edge>(ctx, mine, from + mine.offset, r, v + 8 * r);
      }
    };
    if constexpr (Codec::rotates_all) {
      load(args.rotated);
    } else {
      load(args.gradient);
    }
  }
}

//! @brief Writes the loaded arrangement to an array laid out as the gradient. Elements of 16 bits are means, and are
//! rounded to finite ones.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void store_coordinates(Context const& ctx,
                                   Element* to,
                                   own_chunk<Codec> const& mine,
                                   float const (&v)[32])
{
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    if constexpr (Edge) {
      edge_rows<Codec> const rows{mine};
      rows.store(ctx, r, v + 8 * r, [&](unsigned at, float value) {
        ctx.store(to + mine.offset + at + r * rows.quarter,
                  Context::template finite_element<Element>(value));
      });
    } else if (mine.active) {
      // A branch of its own: nvcc makes more instructions of the same one behind an argument.
      store_quarter<false>(ctx, mine, true, v + 8 * r, to + mine.offset, r);
    }
  }
}

}  // namespace tersum::inline v0::detail
