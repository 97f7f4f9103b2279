// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The way out of the units of a metric on the CPU, and the scales that the library keeps of it.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunks.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_energies.hpp>
#include <tersum/metric/detail/scales.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Chunks that are decoded to the gradient, out of the units of the metric.
template <class Codec, class Element>
class cpu_metric_chunks : public cpu_chunks<Codec, Element> {
 public:
  using cpu_chunks<Codec, Element>::cpu_chunks;

 protected:
  using base = cpu_chunks<Codec, Element>;
  using base::args_;
  using base::least_scale_of;
  using base::scales_of;
  using base::set_;
  using base::size;

  // Values in the units of the metric in those of the gradient.
  void to_own_units(std::uint64_t chunk, float* values) const
  {
    if constexpr (in_metric<Codec>) {
      std::uint32_t const length = args_.table[chunk].length;
      auto const* const scales   = scales_of(chunk);
      multiply_by_scales(set_, values, scales, least_scale_of(scales, length), values, length);
    }
  }

  // The same of what was decoded, which scales that the library keeps follow.
  void leave_metric_in_place(std::uint64_t chunk, float (&values)[extent(size)]) const;

  // Decodes a chunk to the gradient, in its units again, where `decode_to(to)` writes all values of the chunk in those of the
  // metric, to floats, by `multiplied`, or, without a metric, to elements. Scales that the library keeps follow the values.
  template <class Decode>
  void leave_metric(std::uint64_t chunk, Decode const& decode_to) const;

 private:
  // The scales after a chunk was decoded, by the metric's plain form. Overwrites the values.
  void keep_scales(std::uint64_t chunk,
                   float (&values)[extent(size)],
                   float largest,
                   float least) const;
};

template <class Codec, class Element>
template <class Decode>
void cpu_metric_chunks<Codec, Element>::leave_metric(std::uint64_t chunk,
                                                     Decode const& decode_to) const
{
  chunk_entry const entry = args_.table[chunk];
  Element* const to       = args_.gradient + entry.offset;
  bool const whole_chunk  = entry.length == static_cast<std::uint32_t>(size);
  if constexpr (!in_metric<Codec>) {
    if (whole_chunk) {
      decode_to(to);
    } else {
      Element copy[extent(size)];
      decode_to(+copy);
      std::copy_n(copy, entry.length, to);
    }
  } else {
    using scale         = metric_scale<Codec>;
    auto const& metric  = args_.codec.metric;
    scale* const scales = scales_of(chunk);
    float const largest = largest_of(set_, scales, entry.length);
    float const least   = least_scale(host_group{}, metric, largest);
    // What the kernels do, of which those of chunks that are not whole get copies.
    auto const decode_in_kernels = [&]<bool Keeps>(multiplied<Element, scale, Keeps> whole) {
      if (whole_chunk) {
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
}

template <class Codec, class Element>
void cpu_metric_chunks<Codec, Element>::leave_metric_in_place(std::uint64_t chunk,
                                                              float (&values)[extent(size)]) const
{
  if constexpr (keeps_metric<Codec>) {
    alignas(64) float decoded[extent(size)];
    std::copy_n(values, size, decoded);
    float const largest = largest_of(set_, scales_of(chunk), args_.table[chunk].length);
    float const least   = least_scale(host_group{}, args_.codec.metric, largest);
    to_own_units(chunk, values);
    if (!step_is_poisoned(args_)) { keep_scales(chunk, decoded, largest, least); }
  } else {
    to_own_units(chunk, values);
  }
}

template <class Codec, class Element>
void cpu_metric_chunks<Codec, Element>::keep_scales(std::uint64_t chunk,
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
    float const decoded = square_norm<size>(set_, +values);
    first =
      first_scale(host_group{}, first_square(host_group{}, args_, chunk, decoded), entry.length);
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

}  // namespace tersum::inline v0::detail
