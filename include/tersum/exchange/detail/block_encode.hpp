// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradient to packed codes, one pass: signs, rotation, rounding, packing, residual. Kernel body.

#pragma once

#include <tersum/exchange/detail/block_pairs.hpp>
#include <tersum/exchange/detail/block_values.hpp>
#include <tersum/quantize/detail/block_words.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/rotate/detail/fragment_hadamard.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief A chunk of 16-bit values, rotated to the wire arrangement by `tile_hadamard`; returns the scale of its values.
template <bool Edge, class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY float rotate_on_tiles(Context const& ctx,
                                                exchange_args<Codec, Element> const& args,
                                                own_chunk<Codec> const& mine,
                                                float scale,
                                                float* storage,
                                                float (&v)[32])
{
  using tiles           = tile_hadamard<Codec::chunk_size, Element>;
  unsigned const lane   = ctx.thread_rank() % 32;
  int const exponent    = tiles::exponent(ctx, scale);
  int between           = exponent;
  own_chunk<Codec> read = mine;
  if constexpr (!tiles::fills_warp) {
    // A chunk that is not finite must not reach its neighbours in the warp, where products multiply it by zero.
    read.active = mine.active && scale != 0.0f;
    std::uint64_t const chunk =
      mine.chunk - lane / own_chunk<Codec>::hadamard::threads + tiles::chunk_between(lane);
    between =
      tiles::exponent(ctx, chunk < args.chunks ? ctx.load(&args.steps[chunk].encode) : 0.0f);
  }
  std::uint32_t pairs[16];
  load_pairs<Edge>(ctx, args, read, pairs);
  apply_signs(ctx, args.header->sign_key, mine, pairs);
  tiles::to_wire(ctx, pairs, between, reinterpret_cast<word4*>(storage), lane, v);
  return tiles::remaining_scale(ctx, scale, exponent);
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
  using hadamard        = typename own_chunk<Codec>::hadamard;
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
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

  dither_key const key       = key_of(args);
  std::uint64_t const number = mine.chunk * (Codec::chunk_size / 32) + mine.thread;
  if (!selects<Codec> || place.level > 0) {
    at_level(args.codec, selects<Codec> ? place.level : 1u, [&](auto const& codec) {
      constexpr int bits        = std::remove_cvref_t<decltype(codec)>::lanes::bits;
      constexpr unsigned stores = bits / words_per_store<bits>;
      std::uint64_t const at    = selects<Codec>
                                    ? place.word / words_per_store<bits> + mine.thread * stores
                                    : number * stores;
      std::uint32_t words[bits];
      encode_words(ctx, codec, key, args.dither_mask, number, value_scale, scale, v, words);
      if (mine.active) { store_words(ctx, words, args.payload, at); }
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
    load_coordinates<Edge>(ctx, args, mine, given);
    auto const lose = [&](int i, float& value) {
      if (!selects<Codec> || place.level > 0) { value = Context::fma(-step, v[i], value); }
    };
    keep_lost<Edge>(ctx, args, mine, given, lose, !step_is_poisoned(args));
  }
}

}  // namespace tersum::inline v0::detail
