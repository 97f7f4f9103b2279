// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What feedback keeps of a thread's coordinates: kernel body parts.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/metric/detail/scales.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Rounds a thread's coordinates of a chunk to what the state keeps, loaded arrangement.
template <class Residual, class Codec>
TERSUM_BODY void round_to_kept([[maybe_unused]] own_chunk<Codec> const& mine,
                               [[maybe_unused]] std::uint32_t draw,
                               [[maybe_unused]] float (&v)[32])
{
  if constexpr (!std::is_same_v<Residual, float>) {
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
  [[maybe_unused]] constexpr int quarter   = Codec::chunk_size / 4;
  [[maybe_unused]] auto const* const first = args.residual + mine.offset + mine.thread * 8;
  [[maybe_unused]] float const weight      = weight_of_kept(args);
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    [[maybe_unused]] float const value = v[i];
    lose(i, v[i]);
    if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
      if (!exists(mine, i / 8, i % 8)) { continue; }
      context_arithmetic<Context> const math{};
      float const kept = Context::value(ctx.load(first + (i / 8 * quarter + i % 8)));
      v[i] = args.codec.feedback.after(math, value, v[i], weighed<Codec>(math, weight, kept));
    }
  }
  round_to_kept<residual_element<Codec>>(mine, draw_of_kept(args, mine.chunk, args.rank), v);
  if constexpr (Edge) {
    own_chunk<Codec> kept = mine;
    kept.active           = mine.active && keeps;
    store_coordinates<true>(ctx, args.residual, kept, v);
  } else if (keeps) {
    store_coordinates<false>(ctx, args.residual, mine, v);
  }
}

}  // namespace tersum::inline v0::detail
