// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! From a thread's coordinates to the units and the basis in which they are coded, and back: the scales of a metric, and what of a
//! rotation is done in the loaded arrangement. Kernel body parts.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/block_norm.hpp>
#include <tersum/block/block_values.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/block/thread_norm.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief The scales of this thread's coordinates as they are kept, loaded arrangement, zeros where there are none; returns the
//! largest magnitude of the chunk's scales. All threads of the warp call it.
//! @tparam InRows  Whether lanes load neighbours, in more instructions. Of the kernels of a rank's own part, which have all kinds of
//!                 chunks, those for scales that are not aligned do.
template <bool Edge, bool InRows = Edge, class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY float load_scales(Context const& ctx,
                                            exchange_args<Codec, Element> const& args,
                                            own_chunk<Codec> const& mine,
                                            float (&scales)[32])
{
  auto const* const from = args.metric.scales + mine.offset;
  bool const at_once     = moves_in_eights<Codec::chunk_size>(from, mine.length);
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    load_either_way<Edge, InRows>(ctx, mine, from, at_once, r, scales + 8 * r);
  }
  std::uint32_t const largest = Context::bits(thread_norm<32>::largest(ctx, scales));
  return Context::from_bits(
    chunk_maximum(ctx, largest, mine, static_cast<float*>(nullptr)));  // chunks lie in warps
}

//! @brief Replaces values of the loaded arrangement by apply(value, scale) with their scales, raised to the least of the chunk.
//! Without a metric nothing changes.
//! @{
template <bool Edge, bool InRows, in_metric Codec, class Element, class Context, class Apply>
TERSUM_BODY void apply_scales(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              float (&v)[32],
                              Apply const& apply)
{
  float scales[32];
  float const largest = load_scales<Edge, InRows>(ctx, args, mine, scales);
  float const least   = least_scale(context_arithmetic<Context>{}, args.codec.metric, largest);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) { v[i] = apply(v[i], raised_scale(scales[i], least)); }
}
template <bool Edge, bool InRows, class... Given>
TERSUM_BODY void apply_scales(Given const&...)
{
}
//! @}

//! @brief Divides values of the loaded arrangement by their scales.
template <bool Edge, bool InRows = Edge, class Codec, class Element, class Context>
TERSUM_BODY void divide_by_scales(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  own_chunk<Codec> const& mine,
                                  float (&v)[32])
{
  apply_scales<Edge, InRows>(
    ctx, args, mine, v, [](float value, float scale) { return Context::divide(value, scale); });
}

//! @brief Multiplies values of the loaded arrangement by their scales.
template <bool Edge, bool InRows = Edge, class Codec, class Element, class Context>
TERSUM_BODY void multiply_by_scales(Context const& ctx,
                                    exchange_args<Codec, Element> const& args,
                                    own_chunk<Codec> const& mine,
                                    float (&v)[32])
{
  apply_scales<Edge, InRows>(
    ctx, args, mine, v, [](float value, float scale) { return Context::multiply(value, scale); });
}

//! @brief Multiplies decoded values of the loaded arrangement by their scales; scales that the library keeps follow them.
//! Without a metric nothing changes.
//! @{
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void leave_metric(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              float (&v)[32])
{
  multiply_by_scales<Edge>(ctx, args, mine, v);
}
template <bool Edge, keeps_metric Codec, class Element, class Context>
TERSUM_BODY void leave_metric(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              float (&v)[32])
{
  using scale_type = metric_scale<Codec>;
  context_arithmetic<Context> const math{};
  float scales[32];
  float const largest = load_scales<Edge>(ctx, args, mine, scales);
  bool const unknown  = is_unknown_scale(largest);
  float const least   = least_scale(math, args.codec.metric, largest);
  float const before  = static_cast<float>(args.header->step);
  float first         = 0.0f;
  if (ctx.warp_max(unknown ? 1u : 0u) != 0) {
    float existing[32];
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      existing[i] = mine.active && mine.coordinate(i) < mine.length ? v[i] : 0.0f;
    }
    float const decoded = block_norm<Codec::chunk_size>::squared(ctx, mine, nullptr, existing);
    float const square  = mine.active ? first_square(math, args, mine.chunk, decoded) : decoded;
    first               = first_scale(math, square, static_cast<std::uint32_t>(mine.length));
  }
  std::uint32_t const draw = first_draw(mine.chunk, args.header->sign_key);
  auto const kept          = [&](float next, int i) {
    auto const at = static_cast<std::uint32_t>(mine.coordinate(i));
    return kept_scale<scale_type>(next, scales[i], draw + at * draw_stride);
  };
  if (unknown) {  // whose values are in units of 1
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { scales[i] = kept(first, i); }
  } else {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) {
      float const scale = raised_scale(scales[i], least);
      scales[i]         = kept(args.codec.metric.update(math, v[i], scale, before), i);
      v[i]              = Context::multiply(v[i], scale);
    }
  }
  if (!step_is_poisoned(args)) { store_coordinates<Edge>(ctx, args.metric.scales, mine, scales); }
}
//! @}

//! @brief What of a rotation is done in the loaded arrangement, before `to_wire` or behind `to_loaded`: signs, or, in memory, all of it.
//! @param storage  Of the chunk's tile.
//! @tparam Forward       Or back.
//! @tparam ByPredicates  See `block_hadamard::apply_signs`.
//! @param flips          Whether a packed form flips any.
template <bool Forward, std::uint32_t ByPredicates = 0, class Codec, class Element, class Context>
TERSUM_BODY void rotate_loaded(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               own_chunk<Codec> const& mine,
                               [[maybe_unused]] float* storage,
                               float (&v)[32],
                               [[maybe_unused]] bool flips = true)
{
  if constexpr (Codec::rotates_in_memory) {
    own_chunk<Codec>::hadamard::template rotate<Forward>(
      ctx, args.codec.rotator, mine, args.header->sign_key, storage, v);
  } else if constexpr (Codec::rotates_chunks) {
    own_chunk<Codec>::hadamard::template apply_signs<ByPredicates>(
      ctx, mine, args.header->sign_key, v, flips);
  }
}

//! @brief Whether what decodes flips signs by predicates, see `block_hadamard::apply_signs`. At edges and in a metric it holds too much else.
template <bool Edge, class Codec>
inline constexpr bool flips_by_predicates = !Edge && !in_metric<Codec>;

//! @brief This thread's 32 coordinates of 16 bits in the loaded arrangement, two neighbours a word, as they are.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_pairs(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            own_chunk<Codec> const& mine,
                            std::uint32_t (&pairs)[16])
{
  constexpr int quarter      = Codec::chunk_size / 4;
  Element const* const chunk = args.gradient + mine.offset;
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    if (Edge) {
      std::uint32_t eight[8];
      edge_rows<Codec>{mine}.load(ctx, r, eight, [&](unsigned at) {
        return static_cast<std::uint32_t>(ctx.load(chunk + at + r * quarter).bits);
      });
      TERSUM_UNROLL
      for (int j = 0; j < 4; ++j) { pairs[4 * r + j] = eight[2 * j] | eight[2 * j + 1] << 16; }
    } else {
      word4 four{};
      if (mine.active) {
        four = ctx.load(reinterpret_cast<word4 const*>(chunk + mine.thread * 8 + r * quarter));
      }
      pairs[4 * r]     = four.x;
      pairs[4 * r + 1] = four.y;
      pairs[4 * r + 2] = four.z;
      pairs[4 * r + 3] = four.w;
    }
  }
}

//! @brief `block_hadamard::apply_signs` for two coordinates of 16 bits a word.
template <class Codec, class Context>
TERSUM_BODY void apply_signs(Context const&,
                             std::uint64_t key,
                             own_chunk<Codec> const& mine,
                             std::uint32_t (&pairs)[16])
{
  std::uint32_t const word = sign_bits(mine.chunk * (Codec::chunk_size / 32) + mine.thread, key);
  // Bit i in the low half and bit i + 1 in the high one, so that a shift brings both signs of a pair to their places.
  std::uint32_t const spread[2] = {Context::select_bytes(word, word >> 1, 0x5410u),
                                   Context::select_bytes(word, word >> 1, 0x7632u)};
  TERSUM_UNROLL
  for (int p = 0; p < 16; ++p) { pairs[p] ^= spread[p / 8] << (15 - p % 8 * 2) & 0x80008000u; }
}

//! @brief `load_coordinates` in the units of the metric, then what of the rotation comes before `to_wire`: the signs, which 16-bit values take two at a time, in
//! words, or, in memory, all of it.
//! @param storage  Of the chunk's tile.
//! @tparam Edge, Regular  As `find_chunk` has them.
template <bool Edge, bool Regular = !Edge, class Codec, class Element, class Context>
TERSUM_BODY void load_signed(Context const& ctx,
                             exchange_args<Codec, Element> const& args,
                             own_chunk<Codec> const& mine,
                             [[maybe_unused]] float* storage,
                             float (&v)[32])
{
  if constexpr (Codec::rotates_chunks && sizeof(Element) == 2 && !feeds_back<Codec> &&
                !in_metric<Codec>) {
    std::uint32_t pairs[16];
    load_as_edge<Edge, Regular>(
      ctx, args, mine, [&]<bool AtEdge>() { load_pairs<AtEdge>(ctx, args, mine, pairs); });
    apply_signs(ctx, args.header->sign_key, mine, pairs);
    TERSUM_UNROLL
    for (int p = 0; p < 16; ++p) {
      v[2 * p]     = Context::value(Element::from_bits(static_cast<std::uint16_t>(pairs[p])));
      v[2 * p + 1] = Context::value(Element::from_bits(static_cast<std::uint16_t>(pairs[p] >> 16)));
    }
  } else {
    load_as_edge<Edge, Regular>(ctx, args, mine, [&]<bool AtEdge>() {
      load_coordinates<AtEdge>(ctx, args, mine, v);
      divide_by_scales<AtEdge>(ctx, args, mine, v);
    });
    rotate_loaded<true, ~0u>(ctx, args, mine, storage, v);
  }
}

}  // namespace tersum::inline v0::detail
