// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The steps of chunks before they are encoded, and what a step leaves for the next one, on the CPU.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunks.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_energies.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Agreed scalars to steps; of casts, only to the flag of what is not finite.
template <class Codec, class Element>
void derive_chunk_steps(int threads,
                        exchange_args<Codec, Element> const& args,
                        cpu_tuning const& numbers)
{
  std::uint64_t const stretch = numbers.step_stretch;
  if constexpr (moves_with_codes<Codec>) {
    float const* const bypass = args.bypass;
    if (!std::all_of(bypass, bypass + args.bypassed.count, [](float v) { return is_finite(v); })) {
      raise_flag(args);
    }
  }
  parallel_for(threads, (args.chunks + stretch - 1) / stretch, [&](std::uint64_t i) {
    std::uint64_t const end = std::min((i + 1) * stretch, args.chunks);
    for (std::uint64_t chunk = i * stretch; chunk < end; ++chunk) { derive_step(args, chunk); }
  });
}

//! @brief Counts, measures the correlation, advances the step.
template <class Codec, class Element>
void finish_step(int threads, exchange_args<Codec, Element> const& args)
{
  if constexpr (has_steps<Codec>) {
    auto const* const agreed = static_cast<typename Codec::norm_scalar const*>(args.agreed);
    parallel_for(threads, args.chunks > 0 ? args.tensors : 0, [&](std::uint64_t tensor) {
      tensor_record const& record = args.records[tensor];
      std::uint64_t saturated     = 0;
      double of_sum = 0, norms = 0;
      if constexpr (saturates<Codec>) {
        for (std::uint64_t i = 0; i < record.chunks; ++i) {
          saturated += args.steps[record.first_chunk + i].saturated;
        }
      }
      if constexpr (tracks<Codec>) {
        of_sum = tensor_sum(record, [&](double so_far, std::uint64_t chunk) {
          return add_energy(so_far, args.steps[chunk]);
        });
        if constexpr (norms_travel<Codec>) {
          norms = tensor_sum(record, [&](double so_far, std::uint64_t chunk) {
            if (stays_behind<Codec>(args.steps[chunk])) { return so_far; }
            return so_far + static_cast<double>(to_float(agreed[chunk]));
          });
        }
      }
      finish_tensor(args, tensor, of_sum, static_cast<double>(saturated), norms);
    });
  }
  end_step(args);
}

}  // namespace tersum::inline v0::detail
