// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The way of an `entropy_codec` into the units of a metric and back on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/cpu/cpu_metric.hpp>
#include <tersum/exchange/detail/cpu/cpu_stream_kernels.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/metric/detail/scales.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Chunks of the gradient as streams have them, in the units of the metric.
template <class Codec, class Element>
class cpu_stream_metric : cpu_metric_chunks<Codec, Element> {
 public:
  using cpu_metric_chunks<Codec, Element>::cpu_metric_chunks;

  //! A chunk with what was kept; zeros behind its end.
  void load(std::uint64_t chunk, float* to) const
  {
    this->with_values(chunk, [&](auto from) { load_whole(set_, from, to, size); });
  }

  //! What codes with this step lost, in units of the gradient, to the residual.
  //! @param inverse  One over the step; 0 with step 0, where nothing was sent.
  void keep(std::uint64_t chunk, float inverse, float step) const
  {
    this->with_chunk(chunk, [&](float const* whole) {
      alignas(64) float units[size];
      alignas(64) float own[size];
      this->with_values(
        chunk, whole, [&](auto from) { load_whole(set_, from, static_cast<float*>(units), size); });
      find_sent<size>(set_, units, inverse, step, own);
      this->to_own_units(chunk, own);
      keep_lost(chunk, whole, own);
    });
  }

  //! The mean to the gradient; scales that the library keeps follow it. Where all values are finite the mean is, too: what no
  //! float holds is the largest.
  void give_back(std::uint64_t chunk, float const* from) const
  {
    this->leave_metric(chunk, [&](auto whole) { store_whole(set_, from, whole, size); });
    if constexpr (std::is_same_v<Element, float>) {
      float* const to = args_.gradient + args_.table[chunk].offset;
      for (std::uint32_t i = 0; i < args_.table[chunk].length; ++i) {
        to[i] = largest_for_infinity(to[i]);
      }
    }
  }

 private:
  using base = cpu_metric_chunks<Codec, Element>;
  using base::args_;
  using base::set_;
  using base::size;

  void keep_lost(std::uint64_t chunk, float const* values, float const* own) const
  {
    auto* const place = this->kept_place(chunk);
    alignas(64) float now[keeps_blocks<Codec> ? size : 1];
    auto* const residual       = base::as_values(place, now);
    using kept_type            = std::remove_pointer_t<decltype(base::as_values(place, now))>;
    std::uint32_t const length = args_.table[chunk].length;
    std::uint32_t const draw   = draw_of_kept(args_, chunk, args_.rank);
    [[maybe_unused]] float const weight = weight_of_kept(args_);
    for (std::uint32_t i = 0; i < length; ++i) {
      float const before = weighed<Codec>(host_group{}, weight, to_float(residual[i]));
      float const lost   = host_group::subtract(values[i], largest_for_infinity(own[i]));
      float const next   = args_.codec.feedback.after(host_group{}, values[i], lost, before);
      residual[i]        = kept_value<kept_type>(next, draw + i * draw_stride);
    }
    if constexpr (keeps_blocks<Codec>) {
      std::fill(now + length, now + size, 0.0f);
      keep_chunk(host_group{}, now, draw, *place);
    }
  }
};

}  // namespace tersum::inline v0::detail
