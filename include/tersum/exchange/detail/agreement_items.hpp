// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How much the ranks agree on each chunk, as the scale of its mean says. Items of `executor::each`, the same on the CPU and in kernels.

#pragma once

#include <tersum/block/detail/arithmetic_of.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/width_costs.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_parts.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/plan.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief By how much more a chunk counts in the next exchange: a quarter of the way from what it was to what this exchange shows. A chunk
//! that has not travelled, or was not finite, keeps it.
template <class Codec, class Element>
struct keep_agreement_of_chunks {
  exchange_args<Codec, Element> args;
  agreement_rule rule;

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const& memory, std::uint64_t chunk) const
  {
    using scalar           = typename Codec::norm_scalar;
    auto const map         = make_mean_map(args);
    part_place const place = find_part(args, map, chunk);
    if (place.level == 0) { return; }
    float const energy = to_float(memory.load(static_cast<scalar const*>(args.agreed) + chunk));
    float const scale  = bits_float(
      memory.load(args.parts.gathered + (map.begin(place.part) + map.scale_word(place.index))));
    if (!(energy > 0.0f && is_finite(energy) && is_finite(scale))) { return; }
    arithmetic_of<Memory> const math{};
    float const square = math.multiply(math.multiply(scale, scale), rule.square[place.level]);
    float const beyond = math.subtract(math.divide(square, energy), rule.lost[place.level]);
    float const agreed = minimum(maximum(beyond, 0.0f), rule.most);
    float* const kept  = args.selection.agreement + chunk;
    float const before = memory.load(kept);
    float const change = math.fma(math.subtract(agreed, rule.typical), rule.share, -before);
    memory.store(kept, math.fma(change, 0.25f, before));
  }
};

template <class Codec, class Element>
[[nodiscard]] keep_agreement_of_chunks<Codec, Element> agreement_of(
  plan<Codec> const& plan, exchange_args<Codec, Element> const& args)
{
  return {args, agreement_rule_of<Codec>(plan.ranks().size)};
}

}  // namespace tersum::inline v0::detail
