// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of device/quantize.hpp.

#pragma once

#include <tersum/block/block_values.hpp>
#include <tersum/config.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <int Size, class Quantizer, class Reducer, class Element>
struct quantize_kernel : chunk_launch<Size> {
  using chunk = block_chunk<Size>;
  using array = block_values<Size, true>;
  using order = block_hadamard<Size, false>;
  using codes = block_codes<Size, Quantizer, Reducer>;

  Quantizer quantizer;
  Element const* values;
  std::uint64_t count;
  float const* scales;
  dither_key key;
  std::uint32_t* words;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    chunk const mine = chunk::of(ctx, count);
    float v[32];
    std::uint32_t packed[codes::words];
    array::load(ctx, mine, values, v);
    order::template to_wire<striped<Element>>(
      ctx, v, tile_storage<order>(ctx), mine.thread, mine.first);
    float const scale = mine.exists() ? ctx.load(scales + mine.chunk) : 0.0f;
    codes{quantizer}.encode(ctx, mine, key, scale, v, packed);
    codes::store(ctx, mine, packed, words);
  }
};

template <int Size, class Quantizer, class Reducer, class Element>
struct dequantize_kernel : chunk_launch<Size> {
  using chunk = block_chunk<Size>;
  using array = block_values<Size, true>;
  using order = block_hadamard<Size, false>;
  using codes = block_codes<Size, Quantizer, Reducer>;

  std::uint32_t const* words;
  int world;
  float const* steps;
  Element* values;
  std::uint64_t count;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    chunk const mine = chunk::of(ctx, count);
    float v[32];
    std::uint32_t packed[codes::words];
    codes::load(ctx, mine, words, packed);
    codes::decode(ctx, packed, world, v);
    float* const tile = tile_storage<order>(ctx);
    order::template to_loaded<0, 0, striped<Element>>(ctx, v, tile, mine.thread, mine.first);
    float const step = mine.exists() ? ctx.load(steps + mine.chunk) : 0.0f;
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { v[i] = Context::multiply(v[i], step); }
    array::store(ctx, mine, v, values);
  }
};

}  // namespace tersum::inline v0::detail
