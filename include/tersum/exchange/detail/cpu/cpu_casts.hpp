// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks to values of the type that travels and back on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/cpu/cpu_metric.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/feedback/detail/kept_value.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Chunks that travel in values of a type.
template <class Codec, class Element>
class cpu_casts : cpu_metric_chunks<Codec, Element> {
 public:
  using cpu_metric_chunks<Codec, Element>::cpu_metric_chunks;

  //! Gradient to payload; with feedback what is not sent to the residual.
  void encode() const;

  //! Reduced payload to gradient.
  void decode() const;

 private:
  using base = cpu_metric_chunks<Codec, Element>;
  using base::args_;
  using base::set_;
  using base::size;
  using base::threads_;
  using base::with_chunk;

  // What a rank sends of a chunk: within what the sum of all ranks can hold.
  template <class WireElement>
  void send_bounded(std::uint64_t chunk, float const* whole, WireElement* to) const;

  // What a chunk of a cast leaves for the next step: all of it where nothing was sent.
  template <class WireElement>
  void keep_residual(std::uint64_t chunk, float const* whole, WireElement const* sent) const;

  // The same in the units of a metric: what is sent are quotients, and what is kept is in units of the gradient.
  template <class From, class WireElement>
  void send_quotients(std::uint64_t chunk, From const* whole, WireElement* to) const;

  // Sets the flag if a sum is not finite, before scales that the library keeps follow it.
  void inspect() const;

  void decode_in_metric() const;
};

template <class Codec, class Element>
void cpu_casts<Codec, Element>::encode() const
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
        if constexpr (in_metric<Codec>) {
          send_quotients(chunk, whole, stays ? nullptr : to);
        } else if constexpr (feeds_back<Codec>) {
          if (!stays) { send_bounded(chunk, whole, to); }
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
void cpu_casts<Codec, Element>::send_bounded(std::uint64_t chunk,
                                             float const* whole,
                                             WireElement* to) const
{
  chunk_entry const entry   = args_.table[chunk];
  Element const* const from = args_.gradient + entry.offset;
  float const largest       = args_.parts.largest;
  if (entry.length == static_cast<std::uint32_t>(size)) {
    convert_sendable(set_, from, whole, largest, to, size);
  } else {
    Element padded[extent(size)]{};
    std::copy_n(from, entry.length, padded);
    convert_sendable(set_, +padded, whole, largest, to, size);
  }
}

template <class Codec, class Element>
template <class WireElement>
void cpu_casts<Codec, Element>::keep_residual(std::uint64_t chunk,
                                              float const* whole,
                                              WireElement const* sent) const
{
  if (step_is_poisoned(args_)) { return; }
  std::uint32_t const length = args_.table[chunk].length;
  Element const* const from  = args_.gradient + args_.table[chunk].offset;
  auto* const to             = base::kept_place(chunk);
  std::uint32_t draw         = draw_of_kept(args_, chunk, args_.rank);
  if constexpr (has_adds_lost<typename Codec::feedback_type>) {
    keep_finite_residual(set_, from, whole, sent, draw, to, length);
  } else {
    float const weight = weight_of_kept(args_);
    for (std::uint32_t i = 0; i < length; ++i, draw += draw_stride) {
      float const lost = sent == nullptr ? whole[i] : whole[i] - to_float(sent[i]);
      float const kept = weighed<Codec>(host_group{}, weight, to_float(to[i]));
      float const rest = args_.codec.feedback.after(host_group{}, whole[i], lost, kept);
      if (is_sendable<WireElement>(to_float(from[i])) && is_finite(rest)) {
        to[i] = kept_value<residual_element<Codec>>(rest, draw);
      }
    }
  }
}

template <class Codec, class Element>
template <class From, class WireElement>
void cpu_casts<Codec, Element>::send_quotients(std::uint64_t chunk,
                                               From const* whole,
                                               WireElement* to) const
{
  alignas(64) float quotients[extent(size)];
  this->with_values(chunk, whole, [&](auto values) { load_whole(set_, values, quotients, size); });
  if constexpr (!feeds_back<Codec>) {
    static_cast<void>(convert_values(set_, quotients, to, 1.0f, size));
  } else {
    if (to != nullptr) {
      convert_sendable(set_, +quotients, quotients, args_.parts.largest, to, size);
    }
    if (step_is_poisoned(args_)) { return; }
    std::uint32_t const length = args_.table[chunk].length;
    alignas(64) float own[extent(size)]{};
    if (to != nullptr) { static_cast<void>(convert_values(set_, to, own, 1.0f, length)); }
    this->to_own_units(chunk, own);
    float const weight   = weight_of_kept(args_);
    auto* const residual = base::kept_place(chunk);
    std::uint32_t draw   = draw_of_kept(args_, chunk, args_.rank);
    for (std::uint32_t i = 0; i < length; ++i, draw += draw_stride) {
      float const rest_of = host_group::subtract(whole[i], own[i]);
      float const lost    = to == nullptr ? host_group::add(rest_of, 0.0f) : rest_of;
      float const kept    = weighed<Codec>(host_group{}, weight, to_float(residual[i]));
      float const rest    = args_.codec.feedback.after(host_group{}, whole[i], lost, kept);
      if (is_sendable<WireElement>(quotients[i]) && is_kept<Codec>(rest)) {
        residual[i] = kept_value<residual_element<Codec>>(rest, draw);
      }
    }
  }
}

template <class Codec, class Element>
void cpu_casts<Codec, Element>::inspect() const
{
  using wire_element = typename Codec::quantizer_type::element;
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    payload_place const place = find_place(args_, chunk);
    if (place.level == 0) { return; }
    auto const* const from = reinterpret_cast<wire_element const*>(args_.payload + place.word);
    float values[extent(size)];
    if (!convert_values(set_, from, values, 1.0f, size)) { raise_flag(args_); }
  });
}

template <class Codec, class Element>
void cpu_casts<Codec, Element>::decode_in_metric() const
{
  using wire_element = typename Codec::quantizer_type::element;
  float const share  = 1.0f / static_cast<float>(args_.world);
  if constexpr (keeps_metric<Codec>) { inspect(); }
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_entry const entry   = args_.table[chunk];
    payload_place const place = find_place(args_, chunk);
    if (place.level == 0 && !keeps_metric<Codec>) {
      fill_chunk(args_.gradient + entry.offset, entry.length, 0.0f);
      return;
    }
    this->leave_metric(chunk, [&](auto whole) {
      if (place.level == 0) {
        this->store_unsent(0.0f, whole);
        return;
      }
      auto const* const from = reinterpret_cast<wire_element const*>(args_.payload + place.word);
      alignas(64) float values[extent(size)];
      bool const sound = convert_values(set_, from, values, share, size);
      if (!sound && !keeps_metric<Codec>) { raise_flag(args_); }
      store_whole(set_, values, whole, size);
    });
  });
}

template <class Codec, class Element>
void cpu_casts<Codec, Element>::decode() const
{
  if constexpr (in_metric<Codec>) {
    decode_in_metric();
    return;
  } else {
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
}

}  // namespace tersum::inline v0::detail
