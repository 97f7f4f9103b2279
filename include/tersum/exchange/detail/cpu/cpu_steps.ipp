// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Stages of cpu_stages.hpp: from what was agreed to the places and the steps of chunks.

namespace tersum::inline v0::detail {

template <class Codec, class Element>
void cpu_stages<Codec, Element>::select([[maybe_unused]] cpu_tuning const& numbers) const
{
  if constexpr (selects<Codec>) {
    selection_args const& selection = args_.selection;
    auto const energy               = [&](std::uint64_t chunk) {
      std::uint32_t energy_of = 0;
      if constexpr (Codec::chunker_type::by_norm) {
        using scalar = typename Codec::norm_scalar;
        energy_of = weighted_energy(args_, chunk, static_cast<scalar const*>(args_.agreed)[chunk]);
      }
      return score_of(args_, chunk, energy_of);
    };
    chunk_selection{threads_,
                    selection.rule,
                    args_.chunks,
                    selection.scratch->histogram[0],
                    selection.places,
                    numbers.least_selected}
      .run(energy, selection.scratch->header);
    if constexpr (!has_parts<Codec>) {
      std::uint64_t const words =
        static_cast<std::uint64_t>(selection.rule.capacity) * selection.rule.unit_words;
      std::uint64_t const used = selection.scratch->header.base[0];
      std::fill(args_.payload + used, args_.payload + words, 0u);
    }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::derive_steps(cpu_tuning const& numbers) const
{
  using scalar                = typename Codec::norm_scalar;
  scalar const* const agreed  = static_cast<scalar const*>(args_.agreed);
  std::uint64_t const stretch = numbers.step_stretch;
  if constexpr (moves_with_codes<Codec>) {
    float const* const bypass = args_.bypass;
    if (!std::all_of(bypass, bypass + args_.bypassed.count, [](float v) { return is_finite(v); })) {
      raise_flag(args_);
    }
  }
  parallel_for(threads_, (args_.chunks + stretch - 1) / stretch, [&](std::uint64_t i) {
    std::uint64_t const end = std::min((i + 1) * stretch, args_.chunks);
    bool poisoned           = false;
    for (std::uint64_t chunk = i * stretch; chunk < end; ++chunk) {
      if constexpr (!has_steps<Codec>) {
        poisoned =
          poisoned || (has_agreed(args_) && energy_bits(agreed[chunk], args_.world) == 0x7f800000u);
      } else {
        std::uint32_t const tensor  = args_.table[chunk].tensor;
        tensor_record const& record = args_.records[tensor];
        float const measured =
          has_agreed(args_) ? to_float(agreed[per_tensor<Codec> ? tensor : chunk]) : 0.0f;
        args_.steps[chunk] = step_on_level(args_.codec,
                                           find_place(args_, chunk).level,
                                           args_.world,
                                           measured,
                                           record.ratio,
                                           record.chunks);
        poisoned           = poisoned || is_poisoned(args_.steps[chunk]);
      }
    }
    if (poisoned) { raise_flag(args_); }
  });
}

}  // namespace tersum::inline v0::detail
