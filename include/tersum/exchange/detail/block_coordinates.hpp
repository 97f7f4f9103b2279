// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's coordinates of its chunk between global memory and registers, and what feedback keeps of them: kernel body parts.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/block_values.hpp>
#include <tersum/block/detail/lane_row.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/metric/detail/scales.hpp>

#include <cstdint>
#include <type_traits>

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
  //! @param load  load(at): the element so many places after the quarter's first, a float or a word. Lanes load neighbours.
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

//! @brief Eight neighbours of a thread's coordinates, those of quarter r, of the array in which the chunk begins at `chunk`, joined
//! with those of another one if it is given. At edges all threads of the warp call it.
template <bool Edge,
          class Codec,
          class Element,
          class Context,
          class Second = std::nullptr_t,
          class Join   = std::nullptr_t>
TERSUM_BODY void load_eights(Context const& ctx,
                             own_chunk<Codec> const& mine,
                             Element const* chunk,
                             int r,
                             float* v,
                             Second second    = nullptr,
                             Join const& join = nullptr)
{
  if (Edge) {
    unsigned const begin = static_cast<unsigned>(r) * (Codec::chunk_size / 4);
    edge_rows<Codec>{mine}.load(ctx, r, v, [&](unsigned at) {
      return load_joined(ctx, chunk + begin, at, behind(second, begin), join);
    });
  } else {
    load_quarter<false>(ctx, mine, mine.active, chunk, r, v, second, join);
  }
}

//! @brief The same in a kernel that has chunks of all kinds: with `InRows` lanes load neighbours, in more instructions; otherwise a thread
//! loads its own at once where `at_once`. Where `InRows` is `Edge` it is `load_eights`.
template <bool Edge, bool InRows, class Codec, class Element, class Context, class... Joined>
TERSUM_BODY void load_either_way(Context const& ctx,
                                 own_chunk<Codec> const& mine,
                                 Element const* chunk,
                                 bool at_once,
                                 int r,
                                 float* v,
                                 Joined const&... joined)
{
  if (InRows == Edge) {
    load_eights<Edge>(ctx, mine, chunk, r, v, joined...);
  } else if (at_once) {
    load_quarter<false>(ctx, mine, mine.active, chunk, r, v, joined...);
  } else {
    load_quarter<true>(ctx, mine, mine.active, chunk, r, v, joined...);
  }
}

//! @brief What values of an array that lies as the gradient are joined with before they are encoded: where feedback keeps something, the
//! array of that, and how; of differences what all ranks hold; otherwise nothing.
//! @{
template <class Codec, class Element>
[[nodiscard]] TERSUM_BODY std::nullptr_t joined_array(exchange_args<Codec, Element> const&,
                                                      std::uint64_t)
{
  return nullptr;
}
template <class Codec, class Element>
requires feeds_back<Codec>
[[nodiscard]] TERSUM_BODY auto const* joined_array(exchange_args<Codec, Element> const& args,
                                                   std::uint64_t first)
{
  return static_cast<residual_element<Codec> const*>(args.residual + first);
}
template <class Codec, class Element>
requires codes_differences<Codec>
[[nodiscard]] TERSUM_BODY float const* joined_array(exchange_args<Codec, Element> const& args,
                                                    std::uint64_t first)
{
  return args.parts.held + first;
}

template <class Context, class Codec, class Element>
[[nodiscard]] TERSUM_BODY std::nullptr_t joining(exchange_args<Codec, Element> const&)
{
  return nullptr;
}
template <class Context, class Codec, class Element>
requires feeds_back<Codec>
[[nodiscard]] TERSUM_BODY auto joining(exchange_args<Codec, Element> const& args)
{
  return [&args, weight = weight_of_kept(args)](float value, float other) {
    context_arithmetic<Context> const math{};
    return args.codec.feedback.before(math, value, weighed<Codec>(math, weight, other));
  };
}
template <class Context, class Codec, class Element>
requires codes_differences<Codec>
[[nodiscard]] TERSUM_BODY auto joining(exchange_args<Codec, Element> const&)
{
  return [](float value, float held) { return Context::subtract(value, held); };
}
//! @}

//! @brief Calls load.operator()<at_edge>(). Where a kernel has chunks of both kinds, a warp loads all as edges if one is.
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
  auto const other = joined_array(args, mine.offset);
  auto const join  = joining<Context>(args);
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    if (Codec::rotates_all) {
      load_eights<Edge>(ctx, mine, args.rotated + mine.offset, r, v + 8 * r);
    } else {
      load_eights<Edge>(ctx, mine, args.gradient + mine.offset, r, v + 8 * r, other, join);
    }
  }
}

//! @brief Writes the loaded arrangement to an array laid out as the gradient. Means in 16 bits are rounded to finite ones.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void store_coordinates(Context const& ctx,
                                   Element* to,
                                   own_chunk<Codec> const& mine,
                                   float const (&v)[32])
{
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    if (Edge) {
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

//! @brief Writes those coordinates of a chunk that lie in this rank's shard to the shard. All threads of the warp call it.
template <class Codec, class Element, class Context>
TERSUM_BODY void store_in_shard(Context const& ctx,
                                exchange_args<Codec, Element> const& args,
                                own_chunk<Codec> const& mine,
                                float const (&v)[32])
{
  auto const begin     = static_cast<std::int64_t>(mine.offset - args.parts.begin);
  Element* const chunk = args.gradient + begin;
  int const before     = begin < 0 ? static_cast<int>(-begin) : 0;
  // What there is of the chunk up to the end of the shard.
  own_chunk<Codec> in_shard = mine;
  std::uint64_t const left  = args.parts.end - mine.offset;
  if (left < static_cast<std::uint64_t>(mine.length)) { in_shard.length = static_cast<int>(left); }
  bool const at_once =
    !mine.active || (before == 0 && moves_in_eights<Codec::chunk_size>(chunk, in_shard.length));
  if (ctx.warp_max(at_once ? 0u : 1u) == 0) {
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      store_quarter<false>(ctx, mine, mine.active, v + 8 * r, chunk, r);
    }
    return;
  }
  edge_rows<Codec> const rows{in_shard};
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    rows.store(ctx, r, v + 8 * r, [&](unsigned at, float value) {
      if (static_cast<int>(at) >= before - r * rows.quarter) {
        ctx.store(chunk + at + r * rows.quarter, Context::template finite_element<Element>(value));
      }
    });
  }
}

//! @brief Whether a thread has rows copied out of shared memory, as from sm_90 on.
template <class Context>
inline constexpr bool copies_rows = requires(Context const& ctx, void* row)
{
  ctx.show_row();
  ctx.copy_row(row, row, 0u);
  ctx.end_rows();
  ctx.is_elected();
};

//! @brief Whether kernels that decode store whole chunks as rows. Behind a rotation a thread ends with eight neighbours, and of floats sixteen
//! bytes of each thread fill half a sector. In a metric threads would need more registers.
template <bool Edge, class Codec, class Element, class Context>
inline constexpr bool stores_rows =
  !Edge && sizeof(Element) == 4 && copies_rows<Context> && !in_metric<Codec> &&
  (Codec::rotates_chunks || Codec::rotates_in_memory);

//! @brief Puts the loaded arrangement into shared memory in the order of the gradient, behind the last use of `storage`, that of the chunk's tile.
template <class Codec, class Context>
TERSUM_BODY void put_row(Context const& ctx,
                         own_chunk<Codec> const& mine,
                         float* storage,
                         float const (&v)[32])
{
  own_chunk<Codec>::hadamard::synchronize(ctx);
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    store_quarter<false>(ctx, mine, true, v + 8 * r, storage + mine.first, r);
  }
  ctx.show_row();
  own_chunk<Codec>::hadamard::synchronize(ctx);
}

//! @brief Whether this thread is the one of its chunk that has the row copied.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY bool has_row(Context const& ctx, own_chunk<Codec> const& mine)
{
  if constexpr (own_chunk<Codec>::hadamard::threads < 32) {
    return mine.active && mine.thread == 0;
  } else {
    return (own_chunk<Codec>::in_warp || mine.thread < 32) && ctx.is_elected();
  }
}

//! @brief Has the row of this thread's chunk copied, which `end_rows` must end.
template <class Codec, class Context>
TERSUM_BODY void copy_row(Context const& ctx,
                          float* to,
                          own_chunk<Codec> const& mine,
                          float const* storage)
{
  ctx.copy_row(to + mine.offset, storage + mine.first, Codec::chunk_size * 4u);
}

//! @brief `store_coordinates`, as a row where that is how whole chunks are stored.
//! @param storage  Of the chunk's tile. It is free for whoever meets all of its threads at a barrier.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void store_row(Context const& ctx,
                           Element* to,
                           own_chunk<Codec> const& mine,
                           [[maybe_unused]] float* storage,
                           float const (&v)[32])
{
  if constexpr (stores_rows<Edge, Codec, Element, Context>) {
    put_row(ctx, mine, storage, v);
    if (has_row(ctx, mine)) {
      copy_row(ctx, to, mine, storage);
      ctx.end_rows();
    }
  } else {
    store_coordinates<Edge>(ctx, to, mine, v);
  }
}

//! @brief Rounds a thread's coordinates of a chunk to what the state keeps, loaded arrangement.
template <class Residual, class Codec>
TERSUM_BODY void round_to_kept([[maybe_unused]] own_chunk<Codec> const& mine,
                               [[maybe_unused]] std::uint32_t draw,
                               [[maybe_unused]] float (&v)[32])
{
  if constexpr (!std::is_same_v<Residual,
                                float>) {  // nvcc makes more of a loop that changes nothing
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      auto const at = static_cast<std::uint32_t>(mine.coordinate(i));
      v[i]          = round_to_kept<Residual>(v[i], draw + at * draw_stride);
    }
  }
}

//! @brief Writes what feedback keeps to the residual, loaded arrangement.
//! @param v      The values.
//! @param lose   lose(i, value) takes from value i what was decoded of it.
//! @param keeps  Whether the residual changes in this step.
template <bool Edge, class Codec, class Element, class Context, class Lose>
TERSUM_BODY void keep_lost(Context const& ctx,
                           exchange_args<Codec, Element> const& args,
                           own_chunk<Codec> const& mine,
                           float (&v)[32],
                           Lose const& lose,
                           bool keeps = true)
{
  context_arithmetic<Context> const math{};
  constexpr int quarter   = Codec::chunk_size / 4;
  auto const* const first = args.residual + mine.offset + mine.thread * 8;
  float const weight      = weight_of_kept(args);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    float const value = v[i];
    lose(i, v[i]);
    if (!has_adds_lost<typename Codec::feedback_type> && exists(mine, i / 8, i % 8)) {
      float const kept = Context::value(ctx.load(first + (i / 8 * quarter + i % 8)));
      v[i] = args.codec.feedback.after(math, value, v[i], weighed<Codec>(math, weight, kept));
    }
  }
  round_to_kept<residual_element<Codec>>(mine, draw_of_kept(args, mine.chunk, args.rank), v);
  if (Edge) {
    own_chunk<Codec> kept = mine;
    kept.active           = mine.active && keeps;
    store_coordinates<true>(ctx, args.residual, kept, v);
  } else if (keeps) {
    store_coordinates<false>(ctx, args.residual, mine, v);
  }
}

}  // namespace tersum::inline v0::detail
