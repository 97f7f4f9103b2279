// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange on the CPU: what `cpu_executor::perform` calls, and the work, in the order of an exchange. Each
//! stage does what the kernel bodies of the same name do, to the same bits.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_initialize.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/plan.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/rotate/rotation_key.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief The stages on `threads` threads with one instruction set.
template <class Codec, class Element>
class cpu_stages {
 public:
  using args_type = exchange_args<Codec, Element>;

  cpu_stages(int threads, instruction_set set, args_type const& args)
    : threads_(threads), set_(set), args_(args)
  {
  }

  //! Fills header, records and table, clears the residual.
  void initialize(plan<Codec> const& plan, std::uint64_t seed) const;

  //! Gradient to agreed scalars.
  void measure() const;

  //! Which chunks travel, from the agreed norms or at random; clears what the payload leaves free.
  void select(cpu_tuning const& numbers) const;

  //! Agreed scalars to steps; of casts, only to the flag of what is not finite.
  void derive_steps(cpu_tuning const& numbers) const;

  //! Gradient to payload: codes, or converted values.
  void encode() const;

  //! Reduced payload to gradient.
  void decode() const;

  //! Bypassing tensors to the wire and back.
  void encode_bypass() const;
  void decode_bypass() const;

  //! Counts, measures the correlation, advances the step.
  void finish() const;

 protected:
  static constexpr int size = Codec::chunk_size;

  // A chunk's coordinates as an array of `size`: in place when it is whole and needs nothing added, else a copy.
  template <class Body>
  void with_chunk(std::uint64_t chunk, Body const& body) const;

  // What the scales of a chunk are raised to.
  [[nodiscard]] float least_scale_of(chunk_entry const& entry) const
  {
    return least_scale(host_group{}, args_.codec.metric, largest_scale_of(entry));
  }
  [[nodiscard]] float largest_scale_of(chunk_entry const& entry) const
  {
    return largest_of(set_, args_.metric.scales + entry.offset, entry.length);
  }

  // A chunk as `with_chunk` gives it in the units of the metric.
  template <class From, class Body>
  void with_values(std::uint64_t chunk, From const* from, Body const& body) const
  {
    if constexpr (in_metric<Codec>) {
      chunk_entry const entry   = args_.table[chunk];
      using scale               = metric_scale<Codec>;
      scale const* const scales = args_.metric.scales + entry.offset;
      float const least         = least_scale_of(entry);
      if (entry.length == static_cast<std::uint32_t>(size)) {
        body(divided<From, scale>{from, scales, least});
      } else {
        scale padded[extent(size)];
        std::fill(std::copy_n(scales, entry.length, padded), padded + size, scale{});
        body(divided<From, scale>{from, padded, least});
      }
    } else {
      body(from);
    }
  }

  // The same in one call.
  template <class Body>
  void with_values(std::uint64_t chunk, Body const& body) const
  {
    with_chunk(chunk, [&](auto const* from) { with_values(chunk, from, body); });
  }

  // What was kept with the weight of this step: itself, or in `now`.
  template <std::size_t Size>
  [[nodiscard]] float const* with_weight(float const* kept, int length, float (&now)[Size]) const
  {
    if constexpr (weighs_kept<Codec>) {
      auto const count = static_cast<std::size_t>(length);
      static_cast<void>(convert_values(set_, kept, now, weight_of_kept(args_), count));
      return now;
    } else {
      static_cast<void>(length);
      static_cast<void>(now);
      return kept;
    }
  }

  // Values in the units of the metric in those of the gradient.
  void to_own_units(chunk_entry const& entry, float* values) const
  {
    auto const* const scales = args_.metric.scales + entry.offset;
    multiply_by_scales(set_, values, scales, least_scale_of(entry), values, entry.length);
  }

  // Decodes a chunk to the gradient, in its units again, where `decode_to(to)` writes all values of the chunk in those of the
  // metric, to floats or by `multiplied`. Scales that the library keeps follow the values.
  template <class Decode>
  void leave_metric(std::uint64_t chunk, Decode const& decode_to) const;

  // The scales after a chunk was decoded, by the metric's plain form. Overwrites the values.
  void keep_scales(std::uint64_t chunk,
                   float (&values)[extent(size)],
                   float largest,
                   float least) const;

  // All values of a chunk that has not travelled: zeros, or NaN.
  template <class To>
  void store_unsent(float value, To to) const
  {
    float values[extent(size)];
    std::fill_n(values, size, value);
    store_whole(set_, values, to, size);
  }

  // A chunk as `with_chunk` gives it in the basis in which it is quantized; unchanged where vectors rotate as they encode.
  template <class From, class Body>
  void with_rotated(std::uint64_t chunk, From from, Body const& body) const
  {
    if constexpr (Codec::rotates_in_memory) {
      alignas(64) float x[extent(size)];
      float scratch[extent(size)];
      for (int i = 0; i < size; ++i) { x[i] = to_float(from[i]); }
      args_.codec.rotator.forward(
        host_group{}, x, scratch, rotation_key{args_.header->sign_key, chunk});
      body(static_cast<float const*>(x));
    } else {
      body(from);
    }
  }

  // Undoes it where `with_rotated` did anything.
  void rotate_back(std::uint64_t chunk, float (&x)[extent(size)]) const
  {
    if constexpr (Codec::rotates_in_memory) {
      float scratch[extent(size)];
      args_.codec.rotator.backward(
        host_group{}, x, scratch, rotation_key{args_.header->sign_key, chunk});
    }
  }

  int threads_;
  instruction_set set_;
  args_type const& args_;

 private:
  // The sum over a tensor's chunks in the order that the tensor kernels have.
  template <class Term>
  [[nodiscard]] static double tensor_sum(tensor_record const& record, Term const& term);

  // Coordinates in a chunk's full rotation, a power of two: what its unnormalized energy is divided by.
  [[nodiscard]] float rotated_length(std::uint64_t chunk) const;

  void encode_codes() const;
  void decode_codes() const;
  void encode_cast() const;
  void decode_cast() const;

  // What the range's plain form measures.
  template <class From>
  [[nodiscard]] float measure_plainly(std::uint64_t chunk, From from) const;

  void measure_norms() const;
  void measure_ranges() const;
  void tensor_norms() const;
  void mean_energies() const;

  // What a chunk of a cast leaves for the next step: all of it where nothing was sent.
  template <class WireElement>
  void keep_residual(std::uint64_t chunk, float const* whole, WireElement const* sent) const;
};

template <class Codec, class Element>
class cpu_parts;

//! @brief What a stage works with: one rank's plan and memory, and how to work.
//!
//! `run_stage(stage, cpu_work)` is the stage on the CPU, found by its arguments: codecs with stages of their own bring
//! overloads along.
template <class Codec, class Element>
struct cpu_work {
  using codec_type = Codec;

  int threads;
  instruction_set instructions;
  tersum::plan<Codec> const& plan;
  exchange_args<Codec, Element> const& args;
  cpu_tuning const& numbers;

  //! The stages of all chunks.
  [[nodiscard]] auto chunks() const
  {
    return cpu_stages<Codec, Element>{threads, instructions, args};
  }

  //! The stages of chunks that lie in parts.
  [[nodiscard]] auto parts() const
  {
    return cpu_parts<Codec, Element>{threads, instructions, args};
  }
};

template <class T>
inline constexpr bool is_cpu_work = false;
template <class Codec, class Element>
inline constexpr bool is_cpu_work<cpu_work<Codec, Element>> = true;

template <class T>
concept working_on_cpu = is_cpu_work<T>;

[[nodiscard]] status run_stage(stage::initialize const& stage, working_on_cpu auto const& work)
{
  work.chunks().initialize(work.plan, stage.seed);
  return {};
}

[[nodiscard]] status run_stage(stage::open, working_on_cpu auto const& work)
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

[[nodiscard]] status run_stage(stage::recall, working_on_cpu auto const& work)
{
  work.parts().recall();
  return {};
}

[[nodiscard]] status run_stage(stage::gather_bypass, working_on_cpu auto const& work)
{
  if (work.plan.bypassed() > 0) { work.chunks().encode_bypass(); }
  return {};
}

[[nodiscard]] status run_stage(stage::measure, working_on_cpu auto const& work)
{
  work.chunks().measure();
  return {};
}

[[nodiscard]] status run_stage(stage::select, working_on_cpu auto const& work)
{
  work.chunks().select(work.numbers);
  return {};
}

[[nodiscard]] status run_stage(stage::derive_steps, working_on_cpu auto const& work)
{
  work.chunks().derive_steps(work.numbers);
  return {};
}

[[nodiscard]] status run_stage(stage::encode, working_on_cpu auto const& work)
{
  if constexpr (publishing<codec_of<decltype(work)>>) {
    work.parts().publish();
  } else if constexpr (has_parts<codec_of<decltype(work)>>) {
    work.parts().encode();
  } else {
    work.chunks().encode();
  }
  return {};
}

[[nodiscard]] status run_stage(stage::recompress, working_on_cpu auto const& work)
{
  work.parts().recompress();
  return {};
}

//! Its flag stops residuals that move while a payload is decoded, so it comes before that.
[[nodiscard]] status run_stage(stage::return_bypass, working_on_cpu auto const& work)
{
  if (work.plan.bypassed() > 0) { work.chunks().decode_bypass(); }
  return {};
}

[[nodiscard]] status run_stage(stage::decode, working_on_cpu auto const& work)
{
  if constexpr (sharding<codec_of<decltype(work)>>) {
    work.parts().add_shard();
  } else if constexpr (has_parts<codec_of<decltype(work)>>) {
    work.parts().decode();
  } else {
    work.chunks().decode();
  }
  return {};
}

[[nodiscard]] status run_stage(stage::finish, working_on_cpu auto const& work)
{
  work.chunks().finish();
  return {};
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::initialize(plan<Codec> const& plan, std::uint64_t seed) const
{
  *args_.header =
    first_header(args_, seed, plan.coordinates(), sign_key(0, seed), plan.state_fingerprint());
  first_gain(args_);
  std::uint32_t number = 0;
  plan.for_each_record([&](tensor_record const& record) {
    args_.records[number] = record;
    for (std::uint64_t i = 0; i < record.chunks; ++i) {
      std::uint64_t const begin           = std::min<std::uint64_t>(i * size, record.size);
      args_.table[record.first_chunk + i] = {
        .offset = record.offset + begin,
        .length = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, record.size - begin)),
        .tensor = number};
    }
    ++number;
  });
  if constexpr (adds_kept<Codec>) { std::fill_n(args_.residual, residuals_in(plan), 0.0f); }
  if constexpr (in_metric<Codec>) {
    std::fill_n(args_.metric.scales, plan.scales(), metric_scale<Codec>{});
  }
  if constexpr (in_shards<Codec>) {
    plan.for_each_shard(
      [to = args_.parts.records](shard_record const& record) mutable { *to++ = record; });
  }
  if constexpr (scattering<Codec>) {
    if (owner_feeds_back<Codec>) {
      std::fill_n(args_.parts.owner_residual, plan.owned_chunks() * size, 0.0f);
    }
  }
}

template <class Codec, class Element>
template <class Body>
void cpu_stages<Codec, Element>::with_chunk(std::uint64_t chunk, Body const& body) const
{
  if constexpr (Codec::rotates_all) {
    body(static_cast<float const*>(args_.rotated + chunk * size));
  } else {
    chunk_entry const entry    = args_.table[chunk];
    Element const* const whole = args_.gradient + entry.offset;
    int const length           = static_cast<int>(entry.length);
    if constexpr (!feeds_back<Codec>) {
      if (length == size) {
        body(whole);
        return;
      }
    }
    alignas(64) float copy[extent(size)];
    if constexpr (feeds_back<Codec>) {
      alignas(64) float now[weighs_kept<Codec> ? size : 1];
      float const* const kept = with_weight(args_.residual + entry.offset, length, now);
      if constexpr (keeps_sent<Codec>) {
        for (int i = 0; i < length; ++i) { copy[i] = to_float(whole[i]); }
      } else if constexpr (has_adds_lost<typename Codec::feedback_type>) {
        add_residual(set_, whole, kept, copy, entry.length);
      } else {
        for (int i = 0; i < length; ++i) {
          copy[i] = args_.codec.feedback.before(host_group{}, to_float(whole[i]), kept[i]);
        }
      }
    } else {
      for (int i = 0; i < length; ++i) { copy[i] = to_float(whole[i]); }
    }
    std::fill(copy + length, copy + size, 0.0f);
    body(static_cast<float const*>(copy));
  }
}

template <class Codec, class Element>
template <class Decode>
void cpu_stages<Codec, Element>::leave_metric(std::uint64_t chunk, Decode const& decode_to) const
{
  using scale             = metric_scale<Codec>;
  auto const& metric      = args_.codec.metric;
  chunk_entry const entry = args_.table[chunk];
  scale* const scales     = args_.metric.scales + entry.offset;
  Element* const to       = args_.gradient + entry.offset;
  float const largest     = largest_scale_of(entry);
  float const least       = least_scale(host_group{}, metric, largest);
  // What the kernels do, of which those of chunks that are not whole get copies.
  auto const decode_in_kernels = [&]<bool Keeps>(multiplied<Element, scale, Keeps> whole) {
    if (entry.length == static_cast<std::uint32_t>(size)) {
      decode_to(whole);
      return;
    }
    Element copy[extent(size)];
    scale padded[extent(size)];
    std::fill(std::copy_n(scales, entry.length, padded), padded + size, scale{});
    whole.to     = copy;
    whole.scales = padded;
    decode_to(whole);
    std::copy_n(copy, entry.length, to);
    if constexpr (Keeps) { std::copy_n(padded, entry.length, scales); }
  };
  if constexpr (!keeps_metric<Codec>) {
    decode_in_kernels(multiplied<Element, scale, false>{to, scales, least, 1.0f, 1.0f, 0});
  } else {
    bool const keeps = !step_is_poisoned(args_);
    if constexpr (has_steps_averaged<typename Codec::metric_type>) {
      float const steps = metric.steps_averaged(static_cast<float>(args_.header->step));
      bool const usual  = steps >= 1.0f && steps < 0x1p60f;
      if (keeps && usual && !is_unknown_scale(largest)) {
        std::uint32_t const draw = first_draw(chunk, args_.header->sign_key);
        decode_in_kernels(
          multiplied<Element, scale, true>{to, scales, least, steps, 1.0f / steps, draw});
        return;
      }
    }
    alignas(64) float values[extent(size)];
    decode_to(static_cast<float*>(values));
    multiply_by_scales(set_, values, scales, least, to, entry.length);
    if (keeps) { keep_scales(chunk, values, largest, least); }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::keep_scales(std::uint64_t chunk,
                                             float (&values)[extent(size)],
                                             float largest,
                                             float least) const
{
  using scale             = metric_scale<Codec>;
  chunk_entry const entry = args_.table[chunk];
  scale* const scales     = args_.metric.scales + entry.offset;
  float const before      = static_cast<float>(args_.header->step);
  bool const unknown      = is_unknown_scale(largest);
  float first             = 0.0f;
  if (unknown) {
    std::fill(values + entry.length, values + size, 0.0f);
    first = first_scale(host_group{}, square_norm<size>(set_, +values), entry.length);
  }
  std::uint32_t const draw = first_draw(chunk, args_.header->sign_key);
  for (std::uint32_t i = 0; i < entry.length; ++i) {
    float const kept = to_float(scales[i]);
    float next       = first;
    if (!unknown) {
      next = args_.codec.metric.update(host_group{}, values[i], raised_scale(kept, least), before);
    }
    scales[i] = from_float<scale>(kept_scale<scale>(next, kept, draw + i * draw_stride));
  }
}

template <class Codec, class Element>
template <class Term>
double cpu_stages<Codec, Element>::tensor_sum(tensor_record const& record, Term const& term)
{
  constexpr int lanes = 1024;
  double sums[lanes]  = {};
  for (std::uint64_t i = 0; i < record.chunks; ++i) {
    sums[i % lanes] = term(sums[i % lanes], record.first_chunk + i);
  }
  for (int half_of = lanes / 2; half_of > 0; half_of /= 2) {
    for (int i = 0; i < half_of; ++i) { sums[i] = sums[i] + sums[i + half_of]; }
  }
  return sums[0];
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::measure() const
{
  if constexpr (!has_steps<Codec>) {
    measure_norms();
  } else {
    measure_ranges();
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::measure_norms() const
{
  using scalar         = typename Codec::norm_scalar;
  scalar* const agreed = static_cast<scalar*>(args_.agreed);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    with_values(chunk, [&](auto from) {
      agreed[chunk] = to_agreed_norm<scalar>(square_norm<size>(set_, from), args_.world);
    });
  });
  // Two norms share an element. With an odd number of chunks the last half is left, and gets a zero.
  if (std::is_same_v<scalar, norm_log> && args_.chunks % 2 != 0) { agreed[args_.chunks] = {}; }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::measure_ranges() const
{
  using range          = typename Codec::range_type;
  using scalar         = typename range::scalar;
  constexpr bool norms = norms_travel<Codec> || per_tensor<Codec> || tracks<Codec>;
  scalar* const agreed = static_cast<scalar*>(args_.agreed);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    with_values(chunk, [&](auto from) {
      if constexpr (!has_measurement<range>) {
        agreed[chunk] = to_agreed<range>(measure_plainly(chunk, from));
      } else if constexpr (measures<range, statistic::chunk_magnitude>) {
        float magnitude = 0;
        with_rotated(chunk, from, [&](auto rotated) {
          magnitude =
            bits_float(largest_magnitude<Codec>(set_, args_.header->sign_key, chunk, rotated));
        });
        if constexpr (Codec::rotates_chunks || Codec::rotates_in_memory || Codec::rotates_all) {
          magnitude =
            magnitude / rotation_root<Codec>(args_.records[args_.table[chunk].tensor].chunks);
        }
        agreed[chunk] = to_agreed<scalar>(magnitude, true);
      }
      if constexpr (norms) {
        float norm = square_norm<size>(set_, from);
        if constexpr (Codec::rotates_all) { norm = norm / rotated_length(chunk); }
        if constexpr (norms_travel<Codec>) {
          agreed[chunk] = to_agreed<scalar>(norm, false);
        } else {
          args_.steps[chunk].encode = norm;
        }
      }
    });
  });
  if constexpr (norms && !norms_travel<Codec>) { tensor_norms(); }
}

template <class Codec, class Element>
template <class From>
float cpu_stages<Codec, Element>::measure_plainly(std::uint64_t chunk, From from) const
{
  float x[extent(size)];
  float scratch[extent(size)];
  for (int i = 0; i < size; ++i) { x[i] = to_float(from[i]); }
  if constexpr (Codec::range_type::measures_rotated && !Codec::rotates_all) {
    args_.codec.rotator.forward(
      host_group{}, x, scratch, rotation_key{args_.header->sign_key, chunk});
    float const root = rotation_root<Codec>(1);
    for (float& value : x) { value = value / root; }
  }
  return args_.codec.range.measure(host_group{}, x, scratch);
}

template <class Codec, class Element>
float cpu_stages<Codec, Element>::rotated_length(std::uint64_t chunk) const
{
  return static_cast<float>(args_.records[args_.table[chunk].tensor].chunks * size);
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::tensor_norms() const
{
  using scalar = typename Codec::range_type::scalar;
  scalar* const agreed =
    static_cast<scalar*>(args_.agreed) + (per_tensor<Codec> ? 0 : args_.chunks);
  parallel_for(threads_, args_.tensors, [&](std::uint64_t tensor) {
    double const sum = tensor_sum(args_.records[tensor], [&](double so_far, std::uint64_t chunk) {
      return so_far + static_cast<double>(args_.steps[chunk].encode);
    });
    agreed[tensor]   = to_agreed<scalar>(static_cast<float>(sum), true);
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::mean_energies() const
{
  using scalar               = typename Codec::norm_scalar;
  scalar const* const agreed = static_cast<scalar const*>(args_.agreed);
  parallel_for(threads_, args_.tensors, [&](std::uint64_t tensor) {
    tensor_record const& record = args_.records[tensor];
    energy_mean mean;
    for (std::uint64_t i = 0; i < record.chunks; ++i) {
      mean.add(energy_bits(agreed[record.first_chunk + i], args_.world));
    }
    means_of(args_)[tensor] = mean.bits();
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::select([[maybe_unused]] cpu_tuning const& numbers) const
{
  if constexpr (selects<Codec>) {
    selection_args const& selection = args_.selection;
    if constexpr (may_choose_by_tensor<Codec>) {
      if (selection.rule.by_tensor != 0) { mean_energies(); }
    }
    auto const energy = [&](std::uint64_t chunk) {
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
      .run(energy, selection.scratch->header, selection_turn(args_));
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

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode() const
{
  if constexpr (has_steps<Codec>) {
    encode_codes();
  } else {
    encode_cast();
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::decode() const
{
  if constexpr (has_steps<Codec>) {
    decode_codes();
  } else {
    decode_cast();
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode_codes() const
{
  dither_key const key = key_of(args_);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_step const step             = args_.steps[chunk];
    payload_place const place         = find_place(args_, chunk);
    std::uint32_t* const words        = args_.payload + place.word;
    [[maybe_unused]] bool const stays = selects<Codec> && place.level == 0;
    if (stays && !feeds_back<Codec>) { return; }
    with_chunk(chunk, [&]<class From>(From const* from) {
      alignas(64) float own[feeds_back<Codec> ? size : 1];
      if (!stays) {
        auto const source = [&] {
          if constexpr (feeds_back<Codec>) {
            std::uint64_t const first = args_.table[chunk].offset;
            return chunk_source<Element>{args_.gradient + first, args_.residual + first};
          } else {
            return chunk_source<From>{from, nullptr};
          }
        }();
        with_values(chunk, from, [&](auto values) {
          with_rotated(chunk, values, [&](auto rotated) {
            at_level(args_.codec, place.level, [&](auto const& codec) {
              encode_chunk(set_,
                           codec,
                           key,
                           args_.header->sign_key,
                           chunk,
                           step.encode,
                           rotated,
                           source,
                           words,
                           feeds_back<Codec> ? own : nullptr);
            });
          });
        });
        if constexpr (feeds_back<Codec>) {
          rotate_back(chunk, own);
          if constexpr (in_metric<Codec>) { to_own_units(args_.table[chunk], own); }
        }
      }
      if constexpr (feeds_back<Codec>) {
        if (step_is_poisoned(args_)) { return; }
        chunk_entry const entry = args_.table[chunk];
        float* const residual   = args_.residual + entry.offset;
        int const length        = static_cast<int>(entry.length);
        float const own_step    = -(step.decode * static_cast<float>(args_.world));
        if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
          float const weight = weight_of_kept(args_);
          for (int i = 0; i < length; ++i) {
            float const lost = stays ? from[i] : host_group::fma(own_step, own[i], from[i]);
            float const kept = weighed<Codec>(host_group{}, weight, residual[i]);
            residual[i]      = args_.codec.feedback.after(host_group{}, from[i], lost, kept);
          }
        } else if (stays) {
          std::copy_n(from, length, residual);
        } else {
          fused_add(set_, own_step, own, from, length, residual);
        }
      }
    });
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::decode_codes() const
{
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_step& step                 = args_.steps[chunk];
    payload_place const place        = find_place(args_, chunk);
    std::uint32_t const* const words = args_.payload + place.word;
    std::uint64_t const key          = args_.header->sign_key;
    if constexpr (Codec::rotates_all) {
      decode_chunk<Codec>(
        set_, args_.world, key, chunk, step.decode, words, args_.rotated + chunk * size, step);
    } else {
      chunk_entry const entry = args_.table[chunk];
      Element* const to       = args_.gradient + entry.offset;
      if constexpr (in_metric<Codec>) {
        leave_metric(chunk, [&](auto whole) {
          if (selects<Codec> && place.level == 0) {
            store_unsent(0.0f * step.decode, whole);
            return;
          }
          at_level(args_.codec, place.level, [&](auto const& codec) {
            using level_codec = std::remove_cvref_t<decltype(codec)>;
            if constexpr (Codec::rotates_in_memory) {
              alignas(64) float sum[extent(size)];
              decode_chunk<level_codec>(set_, args_.world, key, chunk, 1.0f, words, +sum, step);
              rotate_back(chunk, sum);
              for (float& value : sum) { value = value * step.decode; }
              store_whole(set_, sum, whole, size);
            } else {
              decode_chunk<level_codec>(
                set_, args_.world, key, chunk, step.decode, words, whole, step);
            }
          });
        });
        return;
      }
      if (selects<Codec> && place.level == 0) {
        // The chunk has not travelled: zeros, or NaN if a gradient was not finite.
        fill_chunk(to, entry.length, 0.0f * step.decode);
        return;
      }
      at_level(args_.codec, place.level, [&](auto const& codec) {
        using level_codec = std::remove_cvref_t<decltype(codec)>;
        if constexpr (Codec::rotates_in_memory) {
          alignas(64) float sum[extent(size)];
          decode_chunk<level_codec>(set_, args_.world, key, chunk, 1.0f, words, +sum, step);
          rotate_back(chunk, sum);
          for (std::uint32_t i = 0; i < entry.length; ++i) {
            to[i] = finite_from_float<Element>(sum[i] * step.decode);
          }
        } else if (entry.length == size) {
          decode_chunk<level_codec>(set_, args_.world, key, chunk, step.decode, words, to, step);
        } else {
          Element copy[extent(size)];
          decode_chunk<level_codec>(set_, args_.world, key, chunk, step.decode, words, +copy, step);
          std::memcpy(to, copy, entry.length * sizeof(Element));
        }
      });
    }
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode_cast() const
{
  using wire_element       = typename Codec::quantizer_type::element;
  wire_element* const wire = reinterpret_cast<wire_element*>(args_.payload);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_entry const entry = args_.table[chunk];
    Element const* from     = args_.gradient + entry.offset;
    if constexpr (selects<Codec>) {
      payload_place const place = find_place(args_, chunk);
      bool const stays          = place.level == 0;
      if (stays && !feeds_back<Codec>) { return; }
      auto* const to = reinterpret_cast<wire_element*>(args_.payload + place.word);
      with_chunk(chunk, [&](auto const* whole) {
        if constexpr (feeds_back<Codec>) {
          if (!stays) { convert_sendable(set_, whole, to, size); }
          keep_residual(chunk, whole, stays ? nullptr : to);
        } else {
          static_cast<void>(convert_values(set_, whole, to, 1.0f, size));
        }
      });
    } else {
      wire_element* to = wire + (entry.offset - args_.records[entry.tensor].bypass);
      static_cast<void>(convert_values(set_, from, to, 1.0f, entry.length));
    }
  });
}

template <class Codec, class Element>
template <class WireElement>
void cpu_stages<Codec, Element>::keep_residual(std::uint64_t chunk,
                                               float const* whole,
                                               WireElement const* sent) const
{
  if (step_is_poisoned(args_)) { return; }
  chunk_entry const entry = args_.table[chunk];
  float* const residual   = args_.residual + entry.offset;
  if constexpr (has_adds_lost<typename Codec::feedback_type>) {
    keep_finite_residual(set_, whole, sent, residual, entry.length);
  } else {
    float const weight = weight_of_kept(args_);
    for (std::uint32_t i = 0; i < entry.length; ++i) {
      float const lost = sent == nullptr ? whole[i] : whole[i] - to_float(sent[i]);
      float const kept = weighed<Codec>(host_group{}, weight, residual[i]);
      float const rest = args_.codec.feedback.after(host_group{}, whole[i], lost, kept);
      if (is_sendable<WireElement>(whole[i]) && is_finite(rest)) { residual[i] = rest; }
    }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::decode_cast() const
{
  using wire_element             = typename Codec::quantizer_type::element;
  wire_element const* const wire = reinterpret_cast<wire_element const*>(args_.payload);
  float const share              = 1.0f / static_cast<float>(args_.world);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_entry const entry  = args_.table[chunk];
    wire_element const* from = wire + (entry.offset - args_.records[entry.tensor].bypass);
    Element* to              = args_.gradient + entry.offset;
    if constexpr (selects<Codec>) {
      payload_place const place = find_place(args_, chunk);
      if (place.level == 0) {
        fill_chunk(to, entry.length, 0.0f);
        return;
      }
      from = reinterpret_cast<wire_element const*>(args_.payload + place.word);
    }
    if (!convert_values(set_, from, to, share, entry.length)) { raise_flag(args_); }
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode_bypass() const
{
  for (std::uint64_t tensor = 0; tensor < args_.tensors; ++tensor) {
    tensor_record const& record = args_.records[tensor];
    if (record.chunks != 0) { continue; }
    std::uint64_t first = record.offset;
    if constexpr (publishing<Codec>) {
      if (first < args_.parts.begin || first >= args_.parts.end) { continue; }
      first -= args_.parts.begin;
    }
    for (std::uint64_t i = 0; i < record.size; ++i) {
      args_.bypass[record.bypass + i] = to_float(args_.gradient[first + i]);
    }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::decode_bypass() const
{
  float const share = publishing<Codec> ? 1.0f : 1.0f / static_cast<float>(args_.world);
  for (std::uint64_t tensor = 0; tensor < args_.tensors; ++tensor) {
    tensor_record const& record = args_.records[tensor];
    if (record.chunks != 0) { continue; }
    for (std::uint64_t i = 0; i < record.size; ++i) {
      float const sum = args_.bypass[record.bypass + i];
      if (!is_finite(sum)) { raise_flag(args_); }
      std::uint64_t at = record.offset + i;
      if constexpr (sharding<Codec>) {
        if (at < args_.parts.begin || at >= args_.parts.end) { continue; }
        at -= args_.parts.begin;
      }
      args_.gradient[at] = from_float<Element>(sum * share);
    }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::finish() const
{
  if constexpr (has_steps<Codec>) {
    using range                = typename Codec::range_type;
    using scalar               = typename range::scalar;
    scalar const* const agreed = static_cast<scalar const*>(args_.agreed);
    parallel_for(threads_, args_.tensors, [&](std::uint64_t tensor) {
      tensor_record& record = args_.records[tensor];
      if constexpr (saturates<Codec>) {
        std::uint64_t saturated = 0;
        for (std::uint64_t i = 0; i < record.chunks; ++i) {
          saturated += args_.steps[record.first_chunk + i].saturated;
        }
        record.saturated = saturated;
      }
      if constexpr (tracks<Codec>) {
        double of_sum = tensor_sum(record, [&](double so_far, std::uint64_t chunk) {
          return add_energy(so_far, args_.steps[chunk]);
        });
        if constexpr (saturates<Codec>) {
          double const saturated = static_cast<double>(record.saturated);
          if (is_saturated<Codec>(saturated, record.chunks)) { of_sum = 4 * of_sum; }
        }
        double energy = 0;
        if constexpr (norms_travel<Codec>) {
          energy = tensor_sum(record,
                              [&](double so_far, std::uint64_t chunk) {
                                if (stays_behind<Codec>(args_.steps[chunk])) { return so_far; }
                                return so_far + static_cast<double>(to_float(agreed[chunk]));
                              }) /
                   args_.world;
        } else {
          energy =
            static_cast<double>(to_float(agreed[(per_tensor<Codec> ? 0 : args_.chunks) + tensor]));
        }
        record.ratio =
          correlation_ratio<Codec>(of_sum, energy, args_.world, record.chunks, record.ratio);
      }
    });
  }
  args_.header->step     = args_.header->step + 1;
  args_.header->sign_key = sign_key(args_.header->step, args_.header->seed);
}

}  // namespace tersum::inline v0::detail
