// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks to codes and back on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/codec.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_rows.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/range/chunk_step.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief A chunk that travels in codes which are summed.
template <class Codec, class Element>
class codes_in_rows : chunk_in_rows<Codec, Element> {
  using base = chunk_in_rows<Codec, Element>;
  using base::args;
  using base::number;
  using base::set;
  using base::size;
  using typename base::array;
  using typename base::kept_element;

 public:
  codes_in_rows(instruction_set instructions,
                exchange_args<Codec, Element> const& arguments,
                std::uint64_t chunk)
    : base(instructions, arguments, chunk), place_(find_place(arguments, chunk))
  {
  }

  //! Gradient to payload; with feedback what the codes lose to the residual.
  //! @param dither  Of this step.
  TERSUM_HOST_INLINE void encode(dither_key const& dither) const
  {
    if (stays() && !feeds_back<Codec>) { return; }
    this->read([&]<class From>(From const* from) {
      if constexpr (!feeds_back<Codec>) {
        code(dither, from, chunk_source<From>{from, nullptr}, nullptr);
      } else {
        using source    = chunk_source<Element, kept_element>;
        auto* const to  = this->kept();
        auto const step = args.steps[number()];
        alignas(64) array own;
        if (!stays()) {
          code(dither, from, source{this->gradient(), to}, own);
          this->rotate_back(own);
          this->to_own_units(own);
        }
        if (step_is_poisoned(args)) { return; }
        if (stays()) {
          this->keep(from, from, to);
        } else {
          float const decoded = -(step.decode * static_cast<float>(args.world));
          if constexpr (has_adds_lost<typename Codec::feedback_type> &&
                        std::is_same_v<kept_element, float>) {
            fused_add(set, decoded, own, from, this->length(), to);
          } else {
            fused_add(set, decoded, own, from, this->length(), own);
            this->keep(from, own, to);
          }
        }
      }
    });
  }

  //! Reduced payload to gradient.
  void decode() const
  {
    chunk_step& step                 = args.steps[number()];
    std::uint32_t const* const words = args.payload + place_.word;
    std::uint64_t const key          = args.header->sign_key;
    if constexpr (Codec::rotates_all) {
      decode_chunk<Codec>(
        set, args.world, key, number(), step.decode, words, args.rotated + number() * size, step);
    } else {
      this->leave_metric([&](auto whole) {
        if (stays()) {
          this->store_unsent(0.0f * step.decode, whole);
          return;
        }
        at_level(args.codec, place_.level, [&](auto const& codec) {
          using level_codec = std::remove_cvref_t<decltype(codec)>;
          if constexpr (Codec::rotates_in_memory) {
            alignas(64) array sum;
            decode_chunk<level_codec>(set, args.world, key, number(), 1.0f, words, +sum, step);
            this->rotate_back(sum);
            for (float& value : sum) { value = value * step.decode; }
            store_whole(set, sum, whole, size);
          } else {
            decode_chunk<level_codec>(
              set, args.world, key, number(), step.decode, words, whole, step);
          }
        });
      });
    }
  }

 private:
  [[nodiscard]] bool stays() const { return selects<Codec> && place_.level == 0; }

  //! Encodes values of the chunk. Writes what their codes decode to, over the step, to `own` if that is not null.
  template <class From, class Source>
  void code(dither_key const& dither, From const* from, Source const& source, float* own) const
  {
    this->in_units(from, [&](auto values) {
      this->rotated(values, [&](auto rotated) {
        at_level(args.codec, place_.level, [&](auto const& codec) {
          encode_chunk(set,
                       codec,
                       dither,
                       args.header->sign_key,
                       number(),
                       args.steps[number()].encode,
                       rotated,
                       source,
                       args.payload + place_.word,
                       own);
        });
      });
    });
  }

  payload_place place_;
};

}  // namespace tersum::inline v0::detail
