// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! From a plan and the caller's memory to what kernels are given.

#pragma once

#include <tersum/exchange/detail/exchange_args.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! The word that the rank's random words are xored with; 0 for codecs without dither.
template <class Codec>
[[nodiscard]] constexpr std::uint32_t mask_of(int rank) noexcept
{
  if constexpr (requires { Codec::dither_type::mask(dither_key{}); }) {
    return Codec::dither_type::mask({.rank = static_cast<std::uint32_t>(rank)});
  }
  return 0;
}

//! @brief The array at an offset of the caller's memory, or null if the memory is empty, as the workspace of `initialize`.
template <class T>
[[nodiscard]] T* place_in(std::span<std::byte> memory, std::size_t offset) noexcept
{
  return memory.empty() ? nullptr : reinterpret_cast<T*>(memory.data() + offset);
}

//! @brief The arguments of one rank; `initialize` has neither gradient nor workspace.
template <class Codec, class Element>
[[nodiscard]] exchange_args<Codec, Element> make_args(plan<Codec> const& plan,
                                                      Element* gradient,
                                                      std::span<std::byte> state,
                                                      std::span<std::byte> workspace) noexcept
{
  exchange_args<Codec, Element> args{
    .codec       = plan.codec(),
    .gradient    = gradient,
    .header      = place_in<state_header>(state, 0),
    .records     = place_in<tensor_record>(state, plan.records_offset()),
    .table       = place_in<chunk_entry>(state, plan.table_offset()),
    .residual    = feeds_back<Codec> ? place_in<float>(state, plan.residual_offset()) : nullptr,
    .steps       = place_in<chunk_step>(workspace, 0),
    .rotated     = place_in<float>(workspace, plan.rotated_offset()),
    .payload     = place_in<std::uint32_t>(workspace, plan.payload_offset()),
    .bypass      = place_in<float>(workspace, plan.bypass_offset()),
    .agreed      = place_in<std::byte>(workspace, plan.agreed_offset()),
    .chunks      = plan.chunks(),
    .tensors     = plan.tensors(),
    .world       = plan.ranks().size,
    .rank        = static_cast<std::uint32_t>(plan.ranks().rank),
    .dither_mask = mask_of<Codec>(plan.ranks().rank),
    .selection   = {},
    .parts       = {},
    .bypassed    = {}};
  if constexpr (moves_with_codes<Codec>) { args.bypassed.count = plan.bypassed(); }
  if constexpr (selects<Codec>) {
    args.selection = {.rule    = plan.selection_rule(),
                      .scratch = place_in<selection_scratch>(workspace, plan.selection_offset()),
                      .places  = place_in<std::uint32_t>(workspace, plan.places_offset())};
  }
  if constexpr (sharding<Codec>) {
    args.parts = {.received = place_in<std::uint32_t>(workspace, plan.received_offset()),
                  .records  = place_in<shard_record>(state, plan.shards_offset()),
                  .begin    = plan.shard_begin(plan.ranks().rank),
                  .end      = plan.shard_begin(plan.ranks().rank + 1)};
  } else if constexpr (has_parts<Codec>) {
    args.parts.gathered = place_in<std::uint32_t>(workspace, plan.gathered_offset());
  }
  if constexpr (scattering<Codec>) {
    args.parts.received   = place_in<std::uint32_t>(workspace, plan.received_offset());
    args.parts.part_words = plan.part_bytes() / sizeof(std::uint32_t);
    if (owner_feeds_back<Codec>) {
      args.parts.owner_residual = place_in<float>(state, plan.owner_residual_offset());
    }
  }
  if constexpr (requantizing<Codec>) {
    args.parts.tiles = static_cast<std::uint32_t>(plan.tiles());
  }
  return args;
}

}  // namespace tersum::inline v0::detail
