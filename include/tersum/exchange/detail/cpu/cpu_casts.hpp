// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks to values of the type that travels and back on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunks.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/feedback/detail/byte_block.hpp>
#include <tersum/feedback/detail/kept_value.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Chunks that travel in values of a type.
template <class Codec, class Element>
class cpu_casts : cpu_chunks<Codec, Element> {
 public:
  using cpu_chunks<Codec, Element>::cpu_chunks;

  //! Gradient to payload; with feedback what is not sent to the residual.
  void encode() const;

  //! Reduced payload to gradient.
  void decode() const;

 private:
  using base = cpu_chunks<Codec, Element>;
  using base::args_;
  using base::set_;
  using base::size;
  using base::threads_;
  using base::with_chunk;

  // What a chunk of a cast leaves for the next step: all of it where nothing was sent.
  template <class WireElement>
  void keep_residual(std::uint64_t chunk, float const* whole, WireElement const* sent) const;
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
void cpu_casts<Codec, Element>::keep_residual(std::uint64_t chunk,
                                              float const* whole,
                                              WireElement const* sent) const
{
  if (step_is_poisoned(args_)) { return; }
  chunk_entry const entry = args_.table[chunk];
  auto* const residual    = base::kept_place(chunk);
  std::uint32_t draw      = draw_of_kept(args_, chunk, args_.rank);
  auto const keep         = [&]<class Kept>(Kept* to) {
    if constexpr (has_adds_lost<typename Codec::feedback_type>) {
      keep_finite_residual(set_, whole, sent, draw, to, entry.length);
    } else {
      float const weight = weight_of_kept(args_);
      for (std::uint32_t i = 0; i < entry.length; ++i, draw += draw_stride) {
        float const lost = sent == nullptr ? whole[i] : whole[i] - to_float(sent[i]);
        float const kept = weighed<Codec>(host_group{}, weight, to_float(to[i]));
        float const rest = args_.codec.feedback.after(host_group{}, whole[i], lost, kept);
        if (is_sendable<WireElement>(whole[i]) && is_finite(rest)) {
          to[i] = kept_value<Kept>(rest, draw);
        }
      }
    }
  };
  if constexpr (keeps_blocks<Codec>) {
    std::uint32_t const first = draw;
    alignas(64) float now[extent(size)];
    keep(base::as_values(residual, now));
    std::fill(now + entry.length, now + size, 0.0f);
    keep_chunk(host_group{}, now, first, *residual);
  } else {
    keep(residual);
  }
}

template <class Codec, class Element>
void cpu_casts<Codec, Element>::decode() const
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

}  // namespace tersum::inline v0::detail
