// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks to codes and back on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/codec.hpp>
#include <tersum/exchange/detail/cpu/cpu_metric.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/quantize/dither.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Chunks that travel in codes which are summed.
template <class Codec, class Element>
class cpu_codes : cpu_metric_chunks<Codec, Element> {
 public:
  using cpu_metric_chunks<Codec, Element>::cpu_metric_chunks;

  //! Gradient to payload; with feedback what the codes lose to the residual.
  void encode() const;

  //! Reduced payload to gradient.
  void decode() const { decode(0, args_.chunks); }

  //! The chunks from `first` on, up to `end`.
  void decode(std::uint64_t first, std::uint64_t end) const;

 private:
  using base = cpu_metric_chunks<Codec, Element>;
  using base::args_;
  using base::set_;
  using base::size;
  using base::threads_;
};

template <class Codec, class Element>
void cpu_codes<Codec, Element>::encode() const
{
  dither_key const key = key_of(args_);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_step step                   = args_.steps[chunk];
    payload_place const place         = find_place(args_, chunk);
    std::uint32_t* const words        = args_.payload + place.word;
    [[maybe_unused]] bool const stays = selects<Codec> && place.level == 0;
    if (stays && !feeds_back<Codec>) { return; }
    this->with_chunk(chunk, [&]<class From>(From const* from) {
      alignas(64) float own[feeds_back<Codec> ? size : 1];
      if (!stays) {
        auto const source = [&] {
          if constexpr (feeds_back<Codec>) {
            std::uint64_t const first = args_.table[chunk].offset;
            return chunk_source<Element, residual_element<Codec>>{args_.gradient + first,
                                                                  args_.residual + first};
          } else {
            return chunk_source<From>{from, nullptr};
          }
        }();
        this->with_values(chunk, from, [&](auto values) {
          this->with_rotated(chunk, values, [&](auto rotated) {
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
          this->rotate_back(chunk, own);
          this->to_own_units(chunk, own);
        }
      }
      if constexpr (feeds_back<Codec>) {
        if (step_is_poisoned(args_)) { return; }
        chunk_entry const entry = args_.table[chunk];
        auto* const residual    = this->kept_place(chunk);
        int const length        = static_cast<int>(entry.length);
        float const own_step    = -(step.decode * static_cast<float>(args_.world));
        std::uint32_t draw      = draw_of_kept(args_, chunk, args_.rank);
        using residual_type     = residual_element<Codec>;
        if constexpr (!has_adds_lost<typename Codec::feedback_type>) {
          float const weight = weight_of_kept(args_);
          for (int i = 0; i < length; ++i, draw += draw_stride) {
            float const lost = stays ? from[i] : host_group::fma(own_step, own[i], from[i]);
            float const kept = weighed<Codec>(host_group{}, weight, to_float(residual[i]));
            residual[i]      = kept_value<residual_type>(
              args_.codec.feedback.after(host_group{}, from[i], lost, kept), draw);
          }
        } else if (stays) {
          keep_values(set_, from, draw, residual, entry.length);
        } else if constexpr (!std::is_same_v<residual_type, float>) {
          fused_add(set_, own_step, own, from, length, own);
          keep_values(set_, own, draw, residual, entry.length);
        } else {
          fused_add(set_, own_step, own, from, length, residual);
        }
      }
    });
  });
}

template <class Codec, class Element>
void cpu_codes<Codec, Element>::decode(std::uint64_t first, std::uint64_t end) const
{
  parallel_for(threads_, end - first, [&](std::uint64_t number) {
    std::uint64_t const chunk        = first + number;
    chunk_step& step                 = args_.steps[chunk];
    payload_place const place        = find_place(args_, chunk);
    std::uint32_t const* const words = args_.payload + place.word;
    std::uint64_t const key          = args_.header->sign_key;
    if constexpr (Codec::rotates_all) {
      decode_chunk<Codec>(
        set_, args_.world, key, chunk, step.decode, words, args_.rotated + chunk * size, step);
    } else {
      this->leave_metric(chunk, [&](auto whole) {
        if (selects<Codec> && place.level == 0) {
          this->store_unsent(0.0f * step.decode, whole);
          return;
        }
        at_level(args_.codec, place.level, [&](auto const& codec) {
          using level_codec = std::remove_cvref_t<decltype(codec)>;
          if constexpr (Codec::rotates_in_memory) {
            alignas(64) float sum[extent(size)];
            decode_chunk<level_codec>(set_, args_.world, key, chunk, 1.0f, words, +sum, step);
            this->rotate_back(chunk, sum);
            for (float& value : sum) { value = value * step.decode; }
            store_whole(set_, sum, whole, size);
          } else {
            decode_chunk<level_codec>(
              set_, args_.world, key, chunk, step.decode, words, whole, step);
          }
        });
      });
    }
  });
}

}  // namespace tersum::inline v0::detail
