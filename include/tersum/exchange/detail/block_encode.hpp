// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradient to packed codes, one pass: signs, rotation, rounding, packing, residual. Kernel body.

#pragma once

#include <tersum/exchange/detail/block_pairs.hpp>
#include <tersum/exchange/detail/block_values.hpp>
#include <tersum/quantize/detail/block_round.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/rotate/detail/fragment_hadamard.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief A chunk of 16-bit values, rotated to the wire arrangement by `tile_hadamard`; returns the scale of its values.
template <bool Edge, class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY float rotate_on_tiles(Context const& ctx,
                                                exchange_args<Codec, Element> const& args,
                                                chunk_share<Codec> const& mine,
                                                float scale,
                                                float* storage,
                                                float (&v)[32])
{
  using tiles             = tile_hadamard<Codec::chunk_size, Element>;
  unsigned const lane     = ctx.thread_rank() % 32;
  int const exponent      = tiles::exponent(ctx, scale);
  int between             = exponent;
  chunk_share<Codec> read = mine;
  if constexpr (!tiles::fills_warp) {
    // A chunk that is not finite must not reach its neighbours in the warp, where products multiply it by zero.
    read.active = mine.active && scale != 0.0f;
    std::uint64_t const chunk =
      mine.chunk - lane / chunk_share<Codec>::hadamard::threads + tiles::chunk_between(lane);
    between =
      tiles::exponent(ctx, chunk < args.chunks ? ctx.load(&args.steps[chunk].encode) : 0.0f);
  }
  std::uint32_t pairs[16];
  load_pairs<Edge>(ctx, args, read, pairs);
  apply_signs(ctx, args.header->sign_key, mine, pairs);
  tiles::to_wire(ctx, pairs, between, reinterpret_cast<word4*>(storage), lane, v);
  return tiles::remaining_scale(ctx, scale, exponent);
}

//! Words that a thread stores at once, of the `Bits` words that its 32 codes take.
template <int Bits>
inline constexpr unsigned words_per_store = Bits == 2 ? 2 : 4;

//! @brief Rounds, packs and stores a thread's 32 coordinates, in wire order; with feedback v becomes their codes.
//! @param share        The number of the 32 coordinates, counted over the payload as if all chunks travelled. It numbers
//!                     the two draws of random bytes.
//! @param scale        What values are multiplied by before they are rounded.
//! @param step         `chunk_step::encode`: where it is 0, codes are 0, also of values that are not finite.
//! @param stored       Whether the words go to `payload`, from number `at` on, counted in `words_per_store`.
template <class Codec, class Context>
TERSUM_BODY void encode_share(Context const& ctx,
                              Codec const& codec,
                              dither_key const& key,
                              std::uint32_t mask,
                              std::uint64_t share,
                              float scale,
                              float step,
                              float (&v)[32],
                              bool stored,
                              std::uint32_t* payload,
                              std::uint64_t at)
{
  constexpr int bits = Codec::lanes::bits;
  // All ones if the step is above zero. A mask, because nvcc would make a selection for each word of a condition.
  std::uint32_t const kept =
    static_cast<std::uint32_t>(static_cast<std::int32_t>(0u - Context::bits(step)) >> 31);
  std::uint32_t words[bits];
  TERSUM_UNROLL
  for (int half_of = 0; half_of < 2; ++half_of) {
    std::uint32_t fields[8];
    round_sixteen(ctx,
                  codec,
                  key,
                  mask,
                  share * 2 | static_cast<unsigned>(half_of),
                  scale,
                  v + 16 * half_of,
                  fields);
    pack_fields<Codec>(ctx, fields, words + half_of * (bits / 2));
    if constexpr (feeds_back<Codec>) {
      TERSUM_UNROLL
      for (int i = 0; i < 16; ++i) {
        v[16 * half_of + i] = rounded_value<Codec, Context>(fields, i);
      }
    }
  }
  TERSUM_UNROLL
  for (int w = 0; w < bits; ++w) { words[w] = (words[w] & kept) | (Codec::zero_word & ~kept); }
  if (!stored) { return; }
  if constexpr (bits == 2) {
    ctx.store(reinterpret_cast<std::uint64_t*>(payload) + at,
              words[0] | static_cast<std::uint64_t>(words[1]) << 32);
  } else {
    TERSUM_UNROLL
    for (int w = 0; w < bits; w += 4) {
      ctx.store(reinterpret_cast<word4*>(payload) + at + w / 4,
                word4{words[w], words[w + 1], words[w + 2], words[w + 3]});
    }
  }
}

//! @brief Encodes the chunks from `first_chunk` on; block and thread say which.
//!
//! Reads the gradient (and residual) once, writes lane_bits/8 bytes a coordinate (and the residual). Needs
//! `threads_per_block` threads, `shared_bytes` of shared memory, `grid_of` blocks.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void encode_chunks(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t first_chunk)
{
  using hadamard          = typename chunk_share<Codec>::hadamard;
  chunk_share<Codec> mine = find_share<Edge>(ctx, args, first_chunk);
  payload_place place{};
  if constexpr (selects<Codec>) {
    // Chunks that do not travel are only read for what feedback keeps of them.
    if (mine.active) { place = find_place(args, mine.chunk); }
    if constexpr (!feeds_back<Codec>) { mine.active = mine.active && place.level > 0; }
  }
  if (all_idle(ctx, mine)) { return; }
  float* const storage =
    static_cast<float*>(ctx.shared()) +
    (hadamard::in_warp ? ctx.thread_rank() / 32 * hadamard::storage_floats : 0);

  float v[32];
  float const scale = mine.active ? ctx.load(&args.steps[mine.chunk].encode) : 0.0f;
  float value_scale = scale;  // of what comes out of the rotation
  if constexpr (encodes_on_tiles<Codec, Element>) {
    value_scale = rotate_on_tiles<Edge>(ctx, args, mine, scale, storage, v);
  } else {
    load_signed<Edge>(ctx, args, mine, storage, v);
    hadamard::to_wire(ctx, v, storage, mine.thread, mine.first);
  }

  dither_key const key      = key_of(args);
  std::uint64_t const share = mine.chunk * (Codec::chunk_size / 32) + mine.thread;
  if (!selects<Codec> || place.level > 0) {
    at_level(args.codec, selects<Codec> ? place.level : 1u, [&](auto const& codec) {
      constexpr int bits        = std::remove_cvref_t<decltype(codec)>::lanes::bits;
      constexpr unsigned stores = bits / words_per_store<bits>;
      encode_share(ctx,
                   codec,
                   key,
                   args.dither_mask,
                   share,
                   value_scale,
                   scale,
                   v,
                   mine.active,
                   args.payload,
                   selects<Codec> ? place.word / words_per_store<bits> + mine.thread * stores
                                  : share * stores);
    });
  }

  if constexpr (feeds_back<Codec>) {
    hadamard::synchronize(ctx);
    hadamard::to_loaded(ctx, v, storage, mine.thread, mine.first);
    finish_backward(ctx, args, mine, storage, v);
    float const step = mine.active ? Context::multiply(ctx.load(&args.steps[mine.chunk].decode),
                                                       static_cast<float>(args.world))
                                   : 0.0f;
    float given[32];
    load_share<Edge>(ctx, args, mine, given);
    if (!step_is_poisoned(args)) {
      keep_lost<Edge>(ctx, args, mine, given, [&](int i, float& value) {
        if (!selects<Codec> || place.level > 0) { value = Context::fma(-step, v[i], value); }
      });
    }
  }
}

}  // namespace tersum::inline v0::detail
