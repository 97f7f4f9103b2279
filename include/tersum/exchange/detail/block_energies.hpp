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

//! @brief The energy of a chunk, or of a coordinate of its own.
template <class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t selection_energy(Context const& ctx,
                                                         exchange_args<Codec, Element> const& args,
                                                         std::uint64_t chunk)
{
  if constexpr (gathering<Codec>) {
    float value = Context::value(ctx.load(args.gradient + chunk));
    if constexpr (Codec::feeds_back) {
      value = Context::add(value, ctx.load(args.residual + chunk));
    }
    return magnitude_bits(value);
  } else if constexpr (!Codec::chunker_type::by_norm) {
    return random_energy(chunk, args.header->sign_key);
  } else {
    using scalar = typename Codec::norm_scalar;
    return weighted_energy(args, chunk, ctx.load(static_cast<scalar const*>(args.agreed) + chunk));
  }
}

}  // namespace tersum::inline v0::detail
