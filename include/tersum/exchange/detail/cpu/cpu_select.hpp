// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The choice of the chunks that travel, on the CPU.

#pragma once

#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_energies.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Which chunks travel, from the agreed norms or at random; clears what the payload leaves free.
template <class Codec, class Element>
void choose_chunks(int threads,
                   exchange_args<Codec, Element> const& args,
                   cpu_tuning const& numbers)
{
  selection_args const& selection = args.selection;
  auto const energy               = [&](std::uint64_t chunk) {
    std::uint32_t energy_of = 0;
    if constexpr (Codec::chunker_type::by_norm) {
      using scalar = typename Codec::norm_scalar;
      energy_of    = weighted_energy(args, chunk, static_cast<scalar const*>(args.agreed)[chunk]);
    }
    return score_of(args, chunk, energy_of);
  };
  chunk_selection{threads,
                  selection.rule,
                  args.chunks,
                  selection.scratch->histogram[0],
                  selection.places,
                  numbers.least_selected}
    .run(energy, selection.scratch->header, selection_turn(args));
  if constexpr (!has_parts<Codec>) {
    std::uint64_t const words =
      static_cast<std::uint64_t>(selection.rule.capacity) * selection.rule.unit_words;
    std::uint64_t const used = selection.scratch->header.base[0];
    std::fill(args.payload + used, args.payload + words, 0u);
  }
}

}  // namespace tersum::inline v0::detail
