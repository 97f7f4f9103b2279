// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of coordinates that a seed draws on the CPU: whole groups of neighbours many at once, in vectors, others one by one.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

#define TERSUM_SIMD_SOURCE <tersum_baselines/detail/drawn_kernels.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

TERSUM_KERNEL(draw_places)

#undef TERSUM_DISPATCH
#undef TERSUM_KERNEL
#undef TERSUM_SIMD_SOURCE

//! @brief What encodes and decodes.
template <class Codec, class Element>
class cpu_drawn_coordinates {
 public:
  using wire_element = typename Codec::quantizer_type::element;

  explicit cpu_drawn_coordinates(cpu_work<Codec, Element> const& work)
    : threads_(work.threads), set_(work.instructions), stretch_(work.numbers.coordinate_stretch),
      args_(work.args)
  {
  }

  void encode() const
  {
    for_each<true>(
      most_groups,
      [&](std::uint64_t j, std::uint32_t count) { send(j, count); },
      [&](std::uint64_t j) {
        values()[j] = from_float<wire_element>(to_float(args_.gradient[place_of(j)]));
      });
  }
  void encode() const requires feeds_back<Codec>
  {
    constexpr bool plain = has_adds_lost<typename Codec::feedback_type> && !weighs_kept<Codec> &&
                           std::is_same_v<residual_element<Codec>, float>;
    for_each<plain>(
      most_coordinates / stride(),
      [&](std::uint64_t j, std::uint32_t count) {
        if constexpr (plain) { send_and_keep(j, count); }
      },
      [&](std::uint64_t j) { send_and_keep_one(j); });
  }

  void decode() const
  {
    for_each<true>(
      most_coordinates / stride(),
      [&](std::uint64_t j, std::uint32_t count) { receive(j, count); },
      [&](std::uint64_t j) { receive_one(j); });
  }

 private:
  // Groups that are drawn at once, and, where all of their coordinates are worked on, how many these are at most: they stay in the
  // first cache.
  static constexpr std::uint32_t most_groups = 256, most_coordinates = 2048;

  [[nodiscard]] std::uint32_t stride() const { return args_.codec.chunker.stride; }
  [[nodiscard]] wire_element* values() const
  {
    return reinterpret_cast<wire_element*>(args_.payload);
  }
  [[nodiscard]] std::uint64_t place_of(std::uint64_t j) const
  {
    return args_.codec.chunker.place(j, args_.chunks, args_.header->sign_key);
  }
  // What the sum of a value is multiplied by that stands for so many neighbours.
  [[nodiscard]] float share_of(std::uint64_t neighbours) const
  {
    float const of = args_.codec.chunker.scaled ? static_cast<float>(neighbours) : 1.0f;
    return of / static_cast<float>(args_.world);
  }
  void draw(std::uint64_t j, std::uint32_t count, std::uint32_t* places) const
  {
    auto const first = static_cast<std::uint32_t>(j);  // below 2^31
    draw_places(set_, first, count, stride(), ~args_.header->sign_key, places);
  }

  // Calls some(j, count) for `count` groups of as many neighbours from number j on, up to `at_once`, and one(j) for others. Without
  // `Some` it calls one(j) for all.
  template <bool Some, class ForSome, class ForOne>
  void for_each(std::uint32_t at_once, ForSome const& some, ForOne const& one) const
  {
    std::uint64_t const groups  = args_.codec.chunker.drawn(args_.chunks);
    std::uint64_t const whole   = args_.chunks / stride();
    std::uint64_t const stretch = stretch_ / stride() + 1;
    parallel_for(threads_, (groups + stretch - 1) / stretch, [&](std::uint64_t part) {
      std::uint64_t const end = std::min(groups, (part + 1) * stretch);
      std::uint64_t j         = part * stretch;
      if (Some && at_once > 0) {
        std::uint64_t const most = std::min(at_once, most_groups);
        while (j < std::min(end, whole)) {
          auto const count = static_cast<std::uint32_t>(std::min(std::min(end, whole) - j, most));
          some(j, count);
          j += count;
        }
      }
      for (; j < end; ++j) { one(j); }
    });
  }

  void send(std::uint64_t j, std::uint32_t count) const
  {
    alignas(64) std::uint32_t places[most_groups];
    Element own[most_groups];
    draw(j, count, places);
    Element const* const from = args_.gradient + j * stride();
    for (std::uint32_t k = 0; k < count; ++k) {
      fetch_beyond<false>(from + places[k]);
      own[k] = from[places[k]];
    }
    static_cast<void>(convert_values(set_, +own, values() + j, 1.0f, count));
  }

  void send_and_keep(std::uint64_t j, std::uint32_t count) const
  {
    alignas(64) std::uint32_t places[most_groups];
    alignas(64) float whole[most_coordinates], own[most_groups]{}, rest[most_groups]{};
    Element drawn[most_groups]{};
    draw(j, count, places);
    std::uint64_t const first = j * stride();
    std::uint32_t const size  = count * stride();
    auto* const residual      = args_.residual + first;
    Element const* const from = args_.gradient + first;
    add_residual(set_, from, residual, whole, size);
    // Before all is kept, those that are sent are put aside.
    for (std::uint32_t k = 0; k < count; ++k) {
      own[k]   = whole[places[k]];
      rest[k]  = residual[places[k]];
      drawn[k] = from[places[k]];
    }
    keep_finite_residual(set_,
                         from,
                         whole,
                         static_cast<wire_element const*>(nullptr),
                         kept_at<float>{residual, 0},
                         size);
    convert_sendable(set_, +drawn, own, args_.parts.largest, values() + j, count);
    keep_finite_residual(set_, +drawn, own, values() + j, kept_at<float>{+rest, 0}, count);
    for (std::uint32_t k = 0; k < count; ++k) { residual[places[k]] = rest[k]; }
  }

  void send_and_keep_one(std::uint64_t j) const
  {
    host_group const math{};
    std::uint64_t const begin = j * stride(), drawn = place_of(j);
    std::uint64_t const end = begin + args_.codec.chunker.neighbours(j, args_.chunks);
    for (std::uint64_t i = begin; i < end; ++i) {
      float const kept  = weighed<Codec>(math, weight_of_kept(args_), to_float(args_.residual[i]));
      float const whole = args_.codec.feedback.before(math, to_float(args_.gradient[i]), kept);
      bool const can    = is_sendable<wire_element>(to_float(args_.gradient[i]));
      float lost        = whole;
      if (i == drawn) {
        values()[j] = bounded_from_float<wire_element>(can ? whole : bits_float(0x7fffffffu),
                                                       args_.parts.largest);
        lost = whole - to_float(values()[j]);
      }
      float const rest = args_.codec.feedback.after(math, whole, lost, kept);
      if (can && is_finite(rest)) {
        args_.residual[i] =
          kept_value<residual_element<Codec>>(rest, draw_of_kept(args_, i, args_.rank));
      }
    }
  }

  void receive(std::uint64_t j, std::uint32_t count) const
  {
    alignas(64) std::uint32_t places[most_groups];
    Element means[most_groups];
    draw(j, count, places);
    if (!convert_values(set_, values() + j, +means, share_of(stride()), count)) {
      raise_flag(args_);
    }
    Element* const to = args_.gradient + j * stride();
    fill_chunk(to, count * stride(), 0.0f);
    for (std::uint32_t k = 0; k < count; ++k) { to[places[k]] = means[k]; }
  }

  void receive_one(std::uint64_t j) const
  {
    float const sum = to_float(values()[j]);
    if (!is_finite(sum)) { raise_flag(args_); }
    std::uint32_t const neighbours = args_.codec.chunker.neighbours(j, args_.chunks);
    std::fill_n(args_.gradient + j * stride(), neighbours, Element{});
    args_.gradient[place_of(j)] = from_float<Element>(sum * share_of(neighbours));
  }

  int threads_;
  instruction_set set_;
  std::uint64_t stretch_;
  exchange_args<Codec, Element> const& args_;
};

}  // namespace tersum::inline v0::detail
