// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The residual of an exchange: how many values it has, what feedback is given of them, and what rounds them.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/plan.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief By what `weighed` multiplies in this exchange what was kept.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float weight_of_kept(
  [[maybe_unused]] exchange_args<Codec, Element> const& args)
{
  if constexpr (weighs_kept<Codec>) {
    std::uint64_t const step = args.header->step;
    return args.codec.feedback.kept_weight(step, *args.bypassed.gain);
  }
  return 1.0f;
}

//! @brief What feedback is given of what was kept.
template <class Codec, class Arithmetic>
[[nodiscard]] TERSUM_INLINE float weighed(Arithmetic const&,
                                          [[maybe_unused]] float weight,
                                          float kept)
{
  if constexpr (weighs_kept<Codec>) { return Arithmetic::multiply(weight, kept); }
  return kept;
}

//! @brief Whether a cast keeps this for the next step, or else what it had kept. Sums of floats below 2^20, which halves are made of,
//! are finite.
template <class Codec>
[[nodiscard]] TERSUM_INLINE bool is_kept([[maybe_unused]] float rest)
{
  using sent = typename Codec::quantizer_type::element;
  if constexpr (std::is_same_v<sent, half> && has_adds_lost<typename Codec::feedback_type> &&
                !weighs_kept<Codec> && !in_metric<Codec>) {
    return true;
  } else {
    return ::fabsf(rest) < INFINITY;
  }
}

//! @brief The draw that rounds what a rank keeps of a chunk's first coordinate; `kept_value` takes those of all. Without a meaning
//! where floats are kept.
//! @param rank  This rank, or `second_rank` for what an owner keeps.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint32_t draw_of_kept(
  [[maybe_unused]] exchange_args<Codec, Element> const& args,
  [[maybe_unused]] std::uint64_t chunk,
  [[maybe_unused]] std::uint32_t rank)
{
  if constexpr (!std::is_same_v<residual_element<Codec>, float>) {
    return first_kept_draw(chunk, args.header->sign_key, rank);
  }
  return 0;
}

}  // namespace tersum::inline v0::detail
