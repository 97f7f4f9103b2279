// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kinds of codecs and of chunkers that exchanges treat differently.

#pragma once

#include <tersum/concepts.hpp>

namespace tersum::inline v0 {

//! Codecs whose parts are scattered to owners, which decode, add and encode them again: see `two_shot_codec`.
template <class Codec>
concept scattering = requires
{
  requires Codec::scatters;
};

//! Codecs whose round gathers what each rank sends instead of reducing it: see `top_coordinates_codec`.
template <class Codec>
concept gathering = requires
{
  requires Codec::gathers;
};

//! Codecs whose rounds are exchanges of other codecs: see `quantized_low_rank_codec`.
template <class Codec>
concept nesting = requires
{
  requires Codec::nests;
};

//! Codecs and reductions that decode, add and encode again at every hop: see `per_hop_codec`.
template <class T>
concept requantizing = requires
{
  requires T::requantizes;
};

namespace detail {

//! Whether the ranks agree on a step for each chunk; casts have none, and chunks of a two-shot codec have scales of
//! their own.
template <class Codec>
inline constexpr bool has_steps = requires
{
  typename Codec::range_type;
};

//! Codecs whose chunks lie in parts of the payload, with scales of their own: ranks' parts, or blocks that hops add.
template <class Codec>
concept has_parts = scattering<Codec> || requantizing<Codec>;

//! Codecs whose residual moves while they encode, by what was agreed: all that may flag the step has to be known by
//! then.
template <class Codec>
inline constexpr bool moves_with_codes = Codec::feeds_back&& Codec::agrees && !has_parts<Codec>;

//! Codecs, and reductions, whose hops add tiles: elements with a head.
template <class T>
concept tiling = requantizing<T> && requires
{
  requires T::tiles;
};

//! Whether a chunker gives chunks widths of their own.
template <class Chunker>
[[nodiscard]] constexpr bool has_several_bits() noexcept
{
  static_assert(
    selecting_chunker<Chunker> || !(has_budget<Chunker> || has_by_norm<Chunker>),
    "tersum: a chunker that chooses needs bits, by_norm, level_count and several_bits (then widths and weighting)");
  if constexpr (selecting_chunker<Chunker>) { return Chunker::several_bits; }
  return false;
}

//! Whether a quantizer comes in the widths that a chunker gives.
template <class Chunker, class Quantizer>
[[nodiscard]] constexpr bool has_widths_of() noexcept
{
  if constexpr (has_several_bits<Chunker>()) {
    return has_with_bits<Quantizer, Chunker::widths[0]>;
  }
  return true;
}

//! Whether a chunker needs the chunks' norms.
template <class Chunker>
[[nodiscard]] constexpr bool chooses_by_norm() noexcept
{
  if constexpr (selecting_chunker<Chunker>) { return Chunker::by_norm; }
  return false;
}

}  // namespace detail

}  // namespace tersum::inline v0
