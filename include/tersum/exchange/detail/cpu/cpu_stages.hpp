// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange on the CPU: what `cpu_executor::perform` calls, in the order of an exchange. Each stage does what the
//! kernel bodies of the same name do, to the same bits.

#pragma once

#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/exchange/detail/cpu/cast_in_rows.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_metric.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_rows.hpp>
#include <tersum/exchange/detail/cpu/cpu_parts.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/plan.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Clears what a new state keeps zeros of.
template <class Codec, class Element>
void clear_state(cpu_work<Codec, Element> const& work)
{
  work.plan.state_sections().for_each_cleared([&](std::size_t begin, std::size_t bytes) {
    std::fill_n(reinterpret_cast<std::byte*>(work.args.header) + begin, bytes, std::byte{});
  });
}

//! @brief Copies bypassing tensors to the wire when `Encode`, otherwise back.
template <bool Encode, class Codec, class Element>
void bypass_tensors(exchange_args<Codec, Element> const& args)
{
  float const share = 1.0f / static_cast<float>(args.world);
  for (std::uint64_t tensor = 0; tensor < args.tensors; ++tensor) {
    tensor_record const& record = args.records[tensor];
    for (std::uint64_t i = 0; record.chunks == 0 && i < record.size; ++i) {
      move_bypassed<Encode>(host_memory{}, args, record, i, share);
    }
  }
}

//! @brief Calls body(chunk) for the chunks from `first` on, each in the hand of a thread.
template <template <class, class> class InRows, class Codec, class Element, class Body>
void each_chunk(cpu_work<Codec, Element> const& work,
                exchange_args<Codec, Element> const& args,
                Body const& body,
                std::uint64_t first = 0)
{
  auto const set = work.instructions;
  parallel_for(work.threads, args.chunks - first, [=, &args, &body](std::uint64_t chunk) {
    body(InRows<Codec, Element>{set, args, first + chunk});
  });
}

//! @brief A chunk of which scalars are measured that the ranks agree on.
template <class Codec, class Element>
struct measured_in_rows : chunk_in_rows<Codec, Element> {
  using base = chunk_in_rows<Codec, Element>;
  using base::args;
  using base::number;
  using base::set;
  using base::size;
  using typename base::array;
  using typename base::math;
  using scalar = typename Codec::norm_scalar;

  using base::base;

  void measure() const
  {
    scalar& agreed = static_cast<scalar*>(args.agreed)[number()];
    this->read_in_units([&](auto from) {
      if constexpr (measures_plainly<Codec>) {
        agreed = to_agreed<typename Codec::range_type>(inspected(args, measured_plainly(from)));
      } else if constexpr (measures_magnitudes<Codec>) {
        agreed = to_agreed<scalar>(inspected(args, magnitude(from)), true);
      }
      if constexpr (measures_norms<Codec>) {
        float norm = inspected(args, square_norm<size>(set, from));
        // The rotated copy is not normalized; its length is a power of two.
        if (Codec::rotates_all) { norm = norm / static_cast<float>(chunks() * size); }
        if (norms_travel<Codec>) {
          agreed = to_agreed<scalar>(norm, false);
        } else {
          args.steps[number()].encode = norm;
        }
      }
    });
  }

 private:
  //! Of the tensor.
  [[nodiscard]] std::uint64_t chunks() const { return args.records[this->entry.tensor].chunks; }

  //! The largest of the rotated values, in units of those that are not.
  template <class From>
  [[nodiscard]] float magnitude(From from) const
  {
    float most = 0;
    this->rotated(from, [&](auto rotated) {
      if (Codec::rotates_chunks) {
        alignas(64) array rows;
        rotate_to_rows<size>(set, args.header->sign_key, number(), rotated, +rows);
        most = largest_of(set, +rows, size);
      } else {
        most = largest_of(set, rotated, size);
      }
    });
    return most / rotation_root<Codec>(chunks());
  }

  //! What the range's plain form measures.
  template <class From>
  [[nodiscard]] float measured_plainly(From from) const
  {
    alignas(64) array x;
    array scratch;
    static_cast<void>(convert_values(set, from, +x, 1.0f, std::size_t{size}));
    if constexpr (Codec::range_type::measures_rotated && !Codec::rotates_all) {
      args.codec.rotator.forward(math{}, x, scratch, this->key());
      float const root = rotation_root<Codec>(1);
      for (float& value : x) { value = value / root; }
    }
    return args.codec.coder.range.measure(math{}, x, scratch);
  }
};

//! @name The stages
//! `run_stage(stage, cpu_work)` is the stage on the CPU, found by its arguments: `cpu_parts.hpp` has those that are others where ranks
//! own parts. Codecs with stages of their own bring overloads along, as those of factors do: `lowrank/detail/cpu_low_rank.hpp`.
//! @{

//! Fills header, records and table, clears the residual.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::initialize const& stage, cpu_work<Codec, Element> const& work)
{
  auto const& plan = work.plan;
  auto const& args = work.args;
  *args.header     = first_header(
    args, stage.seed, plan.coordinates(), sign_key(0, stage.seed), plan.state_fingerprint());
  args.bypassed.first_gain();
  std::uint32_t number = 0;
  plan.for_each_record([&](tensor_record const& record) {
    args.records[number] = record;
    for (std::uint64_t i = 0; i < record.chunks; ++i) {
      args.table[record.first_chunk + i] = entry_of<Codec>(record, i, number);
    }
    ++number;
  });
  clear_state(work);
  if constexpr (in_shards<Codec>) {
    plan.for_each_shard(
      [to = args.parts.records](shard_record const& record) mutable { *to++ = record; });
  }
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::open, cpu_work<Codec, Element> const& work)
{
  state_header const& header = *work.args.header;
  auto const& plan           = work.plan;
  if (header.chunks != plan.chunks() || header.coordinates != plan.coordinates() ||
      header.tensors != plan.tensors() || header.layout != plan.state_fingerprint()) {
    return {error_code::invalid_argument,
            "state was not initialized for this plan: call initialize first"};
  }
  return {};
}

//! Copies what all ranks hold of this rank's shard.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::recall, cpu_work<Codec, Element> const& work)
{
  for (std::uint64_t at = 0; at < work.plan.shard_size(); ++at) {
    recall_held(host_memory{}, work.args, at);
  }
  return {};
}

//! Bypassing tensors to the wire.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::gather_bypass, cpu_work<Codec, Element> const& work)
{
  bypass_tensors<true>(work.args);
  return {};
}

//! Gradient to agreed scalars.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::measure, cpu_work<Codec, Element> const& work)
{
  auto const& args     = work.args;
  using scalar         = typename Codec::norm_scalar;
  scalar* const agreed = static_cast<scalar*>(args.agreed);
  each_chunk<measured_in_rows>(work, args, [](auto const& chunk) { chunk.measure(); });
  if constexpr (adds_norms<Codec>) {
    scalar* const of_tensors = agreed + (per_tensor<Codec> ? 0 : args.chunks);
    parallel_for(work.threads, args.tensors, [&](std::uint64_t tensor) {
      double const sum = tensor_sum(args.records[tensor], [&](double so_far, std::uint64_t chunk) {
        return so_far + static_cast<double>(args.steps[chunk].encode);
      });
      of_tensors[tensor] = to_agreed<scalar>(static_cast<float>(sum), true);
    });
  }
  if constexpr (tells_ratios<Codec>) {
    for (std::uint64_t tensor = 0; tensor < args.tensors; ++tensor) { tell_ratio(args, tensor); }
  }
  return {};
}

//! Which chunks travel, from the agreed norms or at random; clears what the payload leaves free.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::select, cpu_work<Codec, Element> const& work)
{
  auto const& args                = work.args;
  selection_args const& selection = args.selection;
  auto const energy               = [&](std::uint64_t chunk) {
    std::uint32_t energy_of = 0;
    if constexpr (Codec::chunker_type::by_norm) {
      using scalar = typename Codec::norm_scalar;
      energy_of    = weighted_energy(args, chunk, static_cast<scalar const*>(args.agreed)[chunk]);
    }
    return score_of(args, chunk, energy_of);
  };
  chunk_selection{work.threads,
                  selection.rule,
                  args.chunks,
                  selection.scratch->histogram[0],
                  selection.places,
                  work.numbers.least_selected}
    .run(energy, selection.scratch->header, selection_turn(args));
  if (!has_parts<Codec>) {
    std::uint64_t const words =
      static_cast<std::uint64_t>(selection.rule.capacity) * selection.rule.unit_words;
    std::uint64_t const used = selection.scratch->header.base[0];
    std::fill(args.payload + used, args.payload + words, 0u);
  }
  return {};
}

//! Agreed scalars to steps; of casts, only to the flag of what is not finite.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::derive_steps, cpu_work<Codec, Element> const& work)
{
  auto const& args            = work.args;
  std::uint64_t const stretch = work.numbers.step_stretch;
  if constexpr (moves_with_codes<Codec>) {
    float const* const bypass = args.bypass;
    if (!std::all_of(bypass, bypass + args.bypassed.count, [](float v) { return is_finite(v); })) {
      raise_flag(args);
    }
  }
  parallel_for(work.threads, (args.chunks + stretch - 1) / stretch, [&](std::uint64_t i) {
    std::uint64_t const end = std::min((i + 1) * stretch, args.chunks);
    for (std::uint64_t chunk = i * stretch; chunk < end; ++chunk) { derive_step(args, chunk); }
  });
  return {};
}

//! Gradient to payload, and what it loses to the residual as far as that is known then.
//! @{
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  each_chunk<cast_in_rows>(work, work.args, [](auto const& chunk) { chunk.encode(); });
  return {};
}

template <has_steps Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  auto const dither = key_of(work.args);
  each_chunk<codes_in_rows>(work, work.args, [&](auto const& chunk) { chunk.encode(dither); });
  return {};
}

//! @}

//! The sums of bypassing tensors from the wire to the gradient, as means. Their flag stops residuals that move while a payload is
//! decoded, so it comes before that.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::return_bypass, cpu_work<Codec, Element> const& work)
{
  bypass_tensors<false>(work.args);
  return {};
}

//! Reduced payload to gradient.
//! @{
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  if (keeps_metric<Codec>) {
    each_chunk<cast_in_rows>(work, work.args, [](auto const& chunk) { chunk.inspect(); });
  }
  each_chunk<cast_in_rows>(work, work.args, [](auto const& chunk) { chunk.decode(); });
  return {};
}

template <has_steps Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  each_chunk<codes_in_rows>(work, work.args, [](auto const& chunk) { chunk.decode(); });
  return {};
}

template <has_steps Codec, class Element>
requires summing<Codec>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  auto const whole = as_of_whole(work.args);
  each_chunk<codes_in_rows>(
    work, whole, [](auto const& chunk) { chunk.decode(); }, whole.parts.first);
  return {};
}
//! @}

//! Counts, measures the correlation, advances the step.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::finish, cpu_work<Codec, Element> const& work)
{
  auto const& args = work.args;
  if constexpr (has_steps<Codec>) {
    auto const* const agreed = static_cast<typename Codec::norm_scalar const*>(args.agreed);
    parallel_for(work.threads, args.chunks > 0 ? args.tensors : 0, [&](std::uint64_t tensor) {
      tensor_record const& record = args.records[tensor];
      std::uint64_t saturated     = 0;
      double of_sum = 0, norms = 0;
      if (saturates<Codec>) {
        for (std::uint64_t i = 0; i < record.chunks; ++i) {
          saturated += args.steps[record.first_chunk + i].saturated;
        }
      }
      if (tracks<Codec>) {
        of_sum = tensor_sum(record, [&](double so_far, std::uint64_t chunk) {
          return add_energy(so_far, args.steps[chunk]);
        });
        if (norms_travel<Codec>) {
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
  return {};
}
//! @}

}  // namespace tersum::inline v0::detail
