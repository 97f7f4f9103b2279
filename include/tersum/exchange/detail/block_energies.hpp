// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the selection of an exchange compares: agreed norms, magnitudes of coordinates, or hashes. Kernel body part.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The energy by which a chunk is chosen, or a coordinate where each is chosen for itself.
template <class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t selection_energy(Context const& ctx,
                                                         exchange_args<Codec, Element> const& args,
                                                         std::uint64_t chunk)
{
  if constexpr (gathering<Codec>) {
    float value = Context::value(ctx.load(args.gradient + chunk));
    if constexpr (feeds_back<Codec>) {
      value = Context::add(value, ctx.load(args.residual + chunk));
    }
    return magnitude_bits(value);
  } else {
    std::uint32_t energy = 0;
    if constexpr (Codec::chunker_type::by_norm) {
      using scalar = typename Codec::norm_scalar;
      energy =
        weighted_energy(args, chunk, ctx.load(static_cast<scalar const*>(args.agreed) + chunk));
    }
    return score_of(args, chunk, energy);
  }
}

}  // namespace tersum::inline v0::detail
