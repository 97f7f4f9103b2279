// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chosen chunks to native elements where what feedback keeps lies in blocks. Kernel bodies.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_cast.hpp>
#include <tersum/exchange/detail/block_kept.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/feedback/detail/byte_block.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Stores eight elements at an address that is a multiple of 16 bytes.
template <class Context, class Element>
TERSUM_BODY void store_eight_elements(Context const& ctx, Element* to, Element const (&v)[8])
{
  if constexpr (sizeof(Element) == 4) {
    store_fours<4>(ctx, to, v);
  } else {
    store_fours_of_elements<4>(ctx, to, v);
  }
}

//! @brief Converts the chosen chunks to the payload and keeps what is left in blocks. A thread has a block: eight neighbours of each
//! quarter of a chunk. What is not sent because it is not finite leaves what was kept, rounded to the block's new step.
template <class Codec, class Element, class Context>
TERSUM_BODY void cast_beside_blocks(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using wire_element         = typename Codec::quantizer_type::element;
  constexpr unsigned quarter = Codec::chunk_size / 4;
  auto const [chunk, thread] = place_selected<Codec, 32>(ctx);
  if (chunk >= args.chunks) { return; }
  payload_place const place = find_place(args, chunk);
  bool const stays          = place.level == 0;
  chunk_entry const entry   = args.table[chunk];
  auto* const wire          = reinterpret_cast<wire_element*>(args.payload + place.word);
  auto* const kept          = args.residual + chunk;
  byte_block const before   = load_block(ctx, kept, thread);
  context_arithmetic<Context> const math{};
  float const weight = weight_of_kept(args);
  float rest[32];
  TERSUM_UNROLL
  for (unsigned r = 0; r < 4; ++r) {
    unsigned const begin = r * quarter + 8 * thread;
    int const left       = minimum(static_cast<int>(entry.length) - static_cast<int>(begin), 8);
    float v[8], sent[8];
    load_some(ctx, args.gradient + entry.offset + begin, left, v);
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      float const own   = kept_of_block(math, before, static_cast<int>(8 * r) + j);
      float const whole = args.codec.feedback.before(math, v[j], weighed<Codec>(math, weight, own));
      // What cannot be sent is a NaN from here on, and not kept.
      v[j]    = is_sendable<wire_element>(v[j]) ? whole : Context::from_bits(0x7fffffffu);
      sent[j] = v[j];
    }
    wire_element elements[8];
    TERSUM_UNROLL
    for (int j = 0; j < 8; j += 2) { round_bounded(ctx, args.parts, sent + j, elements + j); }
    if (!stays) { store_eight_elements(ctx, wire + begin, elements); }
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      float const own  = kept_of_block(math, before, static_cast<int>(8 * r) + j);
      float const lost = stays ? v[j] : Context::subtract(v[j], sent[j]);
      float& next      = rest[static_cast<int>(8 * r) + j];
      next = args.codec.feedback.after(math, v[j], lost, weighed<Codec>(math, weight, own));
      if (!is_finite(next)) { next = own; }
    }
  }
  if (step_is_poisoned(args)) { return; }
  std::uint32_t const draw = draw_of_kept(args, chunk, args.rank) + thread * 8 * draw_stride;
  store_block(ctx, keep_block(math, rest, draw, quarter), kept, thread);
}

}  // namespace tersum::inline v0::detail
