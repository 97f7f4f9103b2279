// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks to codes and summed codes to the mean. Kernel bodies.

#pragma once

#include <tersum/block/block_norm.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/block/thread_codes.hpp>
#include <tersum/codec.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_basis.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/quantize/detail/block_decode.hpp>
#include <tersum/quantize/detail/block_encode.hpp>
#include <tersum/quantize/detail/fragment_decode.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Where the codes of a thread's chunk lie: on level 0 where it has none.
template <class Codec, class Element>
[[nodiscard]] TERSUM_BODY payload_place place_of(exchange_args<Codec, Element> const& args,
                                                 own_chunk<Codec> const& mine)
{
  return selects<Codec> && !mine.active ? payload_place{} : find_place(args, mine.chunk);
}

//! @brief Keeps what the codes of a thread's chunk lack, where feedback does. The codes, wire arrangement, are changed.
//! @{
template <bool Edge, class... Given>
TERSUM_BODY void keep_lost_of_codes(Given const&...)
{
}
template <bool Edge, class Codec, class Element, class Context>
requires feeds_back<Codec> TERSUM_BODY void keep_lost_of_codes(
  Context const& ctx,
  exchange_args<Codec, Element> const& args,
  own_chunk<Codec> const& mine,
  payload_place const& place,
  float* storage,
  float (&v)[32])
{
  using hadamard = typename own_chunk<Codec>::hadamard;
  hadamard::synchronize(ctx);
  hadamard::to_loaded(ctx, v, storage, mine.thread, mine.first);
  rotate_loaded<false>(ctx, args, mine, storage, v);
  multiply_by_scales<Edge>(ctx, args, mine, v);
  float const step = mine.active ? Context::multiply(ctx.load(&args.steps[mine.chunk].decode),
                                                     static_cast<float>(args.world))
                                 : 0.0f;
  float given[32];
  load_coordinates<Edge>(ctx, args, mine, given);
  auto const lose = [&](int i, float& value) {
    if (place.level > 0) { value = Context::fma(-step, v[i], value); }
  };
  keep_lost<Edge>(ctx, args, mine, given, lose, !step_is_poisoned(args));
}
//! @}

//! @brief Encodes the chunks from `first_chunk` on; block and thread say which.
//!
//! Reads the gradient (and residual) once, writes lane_bits/8 bytes a coordinate (and the residual). Its launch is
//! `grid_of`.
//! @tparam Edge, Regular  As `find_chunk` has them.
template <bool Edge, bool Regular = !Edge, class Codec, class Element, class Context>
TERSUM_BODY void encode_chunks(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t first_chunk)
{
  using hadamard            = typename own_chunk<Codec>::hadamard;
  own_chunk<Codec> mine     = find_chunk<Edge, false, Regular>(ctx, args, first_chunk);
  payload_place const place = place_of(args, mine);
  // Chunks that do not travel are only read for what feedback keeps of them.
  mine.active = mine.active && (feeds_back<Codec> || place.level > 0);
  if (all_idle(ctx, mine)) { return; }
  float* const storage = tile_storage<hadamard>(ctx);

  float v[32];
  float const scale = mine.active ? ctx.load(&args.steps[mine.chunk].encode) : 0.0f;
  load_signed<Edge, Regular>(ctx, args, mine, storage, v);
  hadamard::to_wire(ctx, v, storage, mine.thread, mine.first);

  dither_key const key       = key_of(args);
  std::uint64_t const number = mine.chunk * (Codec::chunk_size / 32) + mine.thread;
  if constexpr (rounds_alike<Codec, Context>()) {
    encode_on_level(ctx,
                    args.codec,
                    place.level,
                    key,
                    args.dither_mask,
                    number,
                    scale,
                    v,
                    [&]<std::size_t Bits>(std::uint32_t const(&words)[Bits]) {
                      thread_codes<Bits>::store(
                        ctx, words, args.payload + (place.word + mine.thread * Bits));
                    });
  } else if (place.level > 0) {
    at_level(args.codec, place.level, [&](auto const& codec) {
      constexpr int bits     = std::remove_cvref_t<decltype(codec)>::lanes::bits;
      std::uint64_t const at = selects<Codec> ? place.word + mine.thread * bits : number * bits;
      std::uint32_t words[extent(bits)];
      encode_words(ctx, codec, key, args.dither_mask, number, scale, v, words);
      if (mine.active) { thread_codes<bits>::store(ctx, words, args.payload + at); }
    });
  }
  keep_lost_of_codes<Edge>(ctx, args, mine, place, storage, v);
}

//! @brief Whether the thread that stores what decoding has counted has the row of the chunk copied, too. Counts are summed before the
//! butterflies then, while threads hold little.
template <bool Edge, class Codec, class Element, class Context>
inline constexpr bool ends_with_row =
  saturates<Codec>&& own_chunk<Codec>::in_warp && !decodes_on_tiles<Codec> &&
  stores_rows<Edge, Codec, Element, Context>;

//! @brief Sums over the chunk of what its threads have counted, on thread 0, and where chunks lie in warps on all of them.
template <class Codec, class Context>
TERSUM_BODY void sum_counts(Context const& ctx,
                            own_chunk<Codec> const& mine,
                            float* storage,
                            std::uint32_t& squares,
                            std::uint32_t& at_limit)
{
  at_limit = chunk_sum(ctx, at_limit, mine, storage);
  if (tracks<Codec>) { squares = chunk_sum(ctx, squares, mine, storage); }
}

//! @brief Stores what has been counted of a chunk: in a tracked head-room the squares, too.
template <class Codec, class Element, class Context>
TERSUM_BODY void store_counts(Context const& ctx,
                              exchange_args<Codec, Element> const& args,
                              own_chunk<Codec> const& mine,
                              std::uint32_t squares,
                              std::uint32_t at_limit)
{
  ctx.store(&args.steps[mine.chunk].saturated, at_limit);
  if (tracks<Codec>) { ctx.store(&args.steps[mine.chunk].square_sum, squares); }
}

//! @brief Ends the decoding of a chunk: what has been counted is summed and stored where lanes saturate, beside the copy of the row where
//! the thread that stores it has that copied, too.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void end_counts(Context const& ctx,
                            exchange_args<Codec, Element> const& args,
                            own_chunk<Codec> const& mine,
                            float* storage,
                            std::uint32_t squares,
                            std::uint32_t at_limit)
{
  if constexpr (ends_with_row<Edge, Codec, Element, Context>) {
    if (has_row(ctx, mine)) {
      copy_row(ctx, args.gradient, mine, storage);
      store_counts(ctx, args, mine, squares, at_limit);
      ctx.end_rows();
    }
  } else if (saturates<Codec>) {
    own_chunk<Codec>::hadamard::synchronize(ctx);
    sum_counts(ctx, mine, storage, squares, at_limit);
    if (mine.active && mine.thread == 0) { store_counts(ctx, args, mine, squares, at_limit); }
  }
}

//! @brief The sums of a thread's codes, from the payload to floats in wire order, each with an offset.
//!
//! Where `gathers`, the offset stays through the inverse transform, which adds it up in the coordinates whose index bits of the
//! remaining butterflies are all zero. Index bits 3 and up number threads, bits 0 to 2 and the two highest registers.
//! @{
template <class Codec>
struct own_sums {
  using lanes  = typename Codec::lanes;
  using values = lane_values<Codec>;

  static constexpr bool gathers = Codec::rotates_chunks && lanes::bits <= 4;
  //! Levels of butterflies that `unpack` has done, of the lowest and of the highest bits of the register index.
  static constexpr int low_levels = values::low_levels, high_levels = values::high_levels;

  std::uint32_t words[extent(lanes::bits)];

  template <class Element, class Context>
  TERSUM_BODY void load(Context const& ctx,
                        exchange_args<Codec, Element> const& args,
                        own_chunk<Codec> const& mine,
                        payload_place const& place,
                        std::uint32_t& squares,
                        std::uint32_t& at_limit)
  {
    load_words<Codec>(ctx,
                      args.payload + place.word + mine.thread * lanes::bits,
                      mine.active && place.level > 0,
                      words,
                      squares,
                      at_limit);
  }

  //! Returns the offset.
  template <class Context>
  TERSUM_BODY float unpack(Context const& ctx, int world, float (&v)[32]) const
  {
    values::unpack(ctx, words, v);
    return values::zero(world);
  }
};

//! Up to 256 coordinates no sum of the offsets, or of less, is beyond 2^24, so that all of them are exact.
template <several_bits Codec>
struct own_sums<Codec> {
  static constexpr bool gathers   = Codec::rotates_chunks && Codec::chunk_size <= 256;
  static constexpr int low_levels = 0, high_levels = 0;

  byte_codes codes{};

  template <class Element, class Context>
  TERSUM_BODY void load(Context const& ctx,
                        exchange_args<Codec, Element> const& args,
                        own_chunk<Codec> const& mine,
                        payload_place const& place,
                        std::uint32_t& squares,
                        std::uint32_t& at_limit)
  {
    if (place.level > 0) {
      at_level(args.codec, place.level, [&](auto const& codec) {
        using lanes        = typename std::remove_cvref_t<decltype(codec)>::lanes;
        constexpr int bits = lanes::bits;
        std::uint32_t words[extent(bits)];
        thread_codes<bits>::load(ctx, args.payload + place.word + mine.thread * bits, words);
        codes.take<lanes>(ctx, words);
      });
    }
    codes.inspect(ctx, squares, at_limit);
  }

  template <class Context>
  TERSUM_BODY float unpack(Context const& ctx, int, float (&v)[32]) const
  {
    codes.to_floats(ctx, v);
    return byte_codes::zero;
  }
};
//! @}

//! @brief Brings these sums to the loaded arrangement, without the offset.
template <class Codec, class Context>
TERSUM_BODY void sums_to_loaded(Context const& ctx,
                                own_sums<Codec> const& sums,
                                own_chunk<Codec> const& mine,
                                int world,
                                float* storage,
                                float (&v)[32])
{
  using own        = own_sums<Codec>;
  float const zero = sums.unpack(ctx, world, v);
  TERSUM_UNROLL
  for (int k = 0; !own::gathers && k < 32; ++k) { v[k] = Context::subtract(v[k], zero); }
  own_chunk<Codec>::hadamard::template to_loaded<own::low_levels, own::high_levels>(
    ctx, v, storage, mine.thread, mine.first);
  if (own::gathers) {
    constexpr unsigned done =
      ((1u << own::low_levels) - 1) | (0x1fu & ~(0x1fu >> own::high_levels));
    constexpr float times =
      static_cast<float>(Codec::chunk_size >> (own::low_levels + own::high_levels));
    v[0] = Context::subtract(v[0], (mine.thread & ~done) == 0 ? zero * times : 0.0f);
  }
}

//! @brief Decodes a thread's coordinates of a chunk by butterflies and an exchange through shared memory.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void decode_coordinates(Context const& ctx,
                                    exchange_args<Codec, Element> const& args,
                                    own_chunk<Codec> const& mine,
                                    payload_place const& place,
                                    float* storage,
                                    std::uint32_t& squares,
                                    std::uint32_t& at_limit)
{
  own_sums<Codec> sums{};
  sums.load(ctx, args, mine, place, squares, at_limit);
  if (ends_with_row<Edge, Codec, Element, Context>) {
    sum_counts(ctx, mine, storage, squares, at_limit);
  }
  float v[32];
  sums_to_loaded(ctx, sums, mine, args.world, storage, v);
  if (Codec::rotates_in_memory) { rotate_loaded<false>(ctx, args, mine, storage, v); }
  std::uint32_t step_bits =
    mine.active ? Context::bits(ctx.load(&args.steps[mine.chunk].decode)) : 0;
  // A chunk that has not travelled has codes of 0 here, and becomes zeros, or NaN if a gradient was not finite.
  if (Codec::rotates_in_memory && place.level == 0) {
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { v[i] = 0.0f; }
  }
  std::uint32_t const word =
    Codec::rotates_chunks && place.level > 0
      ? sign_bits(mine.chunk * (Codec::chunk_size / 32) + mine.thread, args.header->sign_key)
      : 0;
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    if (flips_by_predicates<Edge, Codec>) {
      v[i] = Context::multiply(flip_sign(v[i], word, i), Context::from_bits(step_bits));
    } else {
      v[i] =
        Context::multiply(v[i], Context::from_bits(step_bits ^ ((word << (31 - i)) & 0x80000000u)));
    }
  }
  if (Codec::rotates_all) { return store_coordinates<false>(ctx, args.rotated, mine, v); }
  leave_metric<Edge>(ctx, args, mine, v);
  if constexpr (ends_with_row<Edge, Codec, Element, Context>) {
    put_row(ctx, mine, storage, v);
  } else {
    store_row<Edge>(ctx, args.gradient, mine, storage, v);
  }
}

//! @brief Decodes the chunks from `first_chunk` on; block and thread say which.
//!
//! Reads lane_bits/8 bytes a coordinate, writes the mean. Same launch as `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void decode_chunks(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t first_chunk)
{
  using hadamard        = typename own_chunk<Codec>::hadamard;
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float* const storage      = tile_storage<hadamard>(ctx);
  payload_place const place = place_of(args, mine);
  std::uint32_t squares = 0, at_limit = 0;
  if constexpr (!Edge && decodes_on_tiles<Codec>) {
    constexpr int bits = Codec::lanes::bits;
    std::uint32_t words[extent(bits)];
    load_words<Codec>(
      ctx, args.payload + place.word + mine.thread * bits, true, words, squares, at_limit);
    float v[32];
    using tiles = tile_decode<Codec, Element>;
    tiles::to_rows(ctx, words, mine.thread, v);
    std::uint32_t const signs = tiles::signs(ctx, mine.chunk, args.header->sign_key, mine.thread);
    float const step          = ctx.load(&args.steps[mine.chunk].decode);
    store_rows<Codec>(ctx, args.gradient + mine.offset, signs, step, mine.thread, v);
  } else {
    decode_coordinates<Edge>(ctx, args, mine, place, storage, squares, at_limit);
  }

  end_counts<Edge>(ctx, args, mine, storage, squares, at_limit);
}

}  // namespace tersum::inline v0::detail
