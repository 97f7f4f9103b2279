// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The choice of the chunks that travel, on the CPU.

#pragma once

#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/detail/width_costs.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_energies.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The mean energy of every tensor, in whose units a choice counts those of its chunks.
template <class Codec, class Element>
void find_mean_energies(int threads, exchange_args<Codec, Element> const& args)
{
  using scalar               = typename Codec::norm_scalar;
  scalar const* const agreed = static_cast<scalar const*>(args.agreed);
  parallel_for(threads, args.tensors, [&](std::uint64_t tensor) {
    tensor_record const& record = args.records[tensor];
    energy_mean mean;
    for (std::uint64_t i = 0; i < record.chunks; ++i) {
      mean.add(energy_bits(agreed[record.first_chunk + i], args.world));
    }
    means_of(args)[tensor] = mean.bits();
  });
}

//! What steps cost on the way down, if that differs.
template <class Codec, class Element>
[[nodiscard]] mean_costs const* mean_costs_in(
  [[maybe_unused]] exchange_args<Codec, Element> const& args)
{
  if constexpr (allots_both_ways<Codec>) { return &args.selection.mean; }
  return nullptr;
}

//! @brief Which chunks travel, from the agreed norms or at random; clears what the payload leaves free.
template <class Codec, class Element>
void choose_chunks(int threads,
                   exchange_args<Codec, Element> const& args,
                   cpu_tuning const& numbers)
{
  selection_args const& selection = args.selection;
  if constexpr (may_choose_by_tensor<Codec>) {
    if (selection.rule.by_tensor != 0) { find_mean_energies(threads, args); }
  }
  auto const energy = [&](std::uint64_t chunk) {
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
                  numbers.least_selected,
                  mean_costs_in(args)}
    .run(energy, selection.scratch->header, selection_turn(args));
  if constexpr (!has_parts<Codec>) {
    std::uint64_t const words =
      static_cast<std::uint64_t>(selection.rule.capacity) * selection.rule.unit_words;
    std::uint64_t const used = selection.scratch->header.base[0];
    std::fill(args.payload + used, args.payload + words, 0u);
  }
}

}  // namespace tersum::inline v0::detail
