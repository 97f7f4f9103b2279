// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of `entropy_codec` on the CPU.

#pragma once

#include <tersum/entropy_codec.hpp>
#include <tersum/exchange/detail/cpu/cpu_coded_streams.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/cpu/cpu_stream_kernels.hpp>
#include <tersum/exchange/detail/cpu/cpu_stream_metric.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/feedback/detail/byte_block.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief What streams are made of and what becomes of them: the gradient, what feedback keeps, and the mean.
template <class Codec, class Element>
class cpu_streams : public cpu_coded_streams<Codec, Element> {
 public:
  using base = cpu_coded_streams<Codec, Element>;
  using base::base;
  using typename base::span_type;

  //! The gradient, with what was kept.
  void fill() const
  {
    [[maybe_unused]] float const weight = weight_of_kept(args_);
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      if constexpr (in_metric<Codec>) {
        in_metric_units().load(span_.set.chunk(stream, index), values(stream, index));
        return;
      }
      chunk_entry const entry   = args_.table[span_.set.chunk(stream, index)];
      Element const* const from = args_.gradient + entry.offset;
      float* const to           = values(stream, index);
      for (std::uint32_t i = 0; i < entry.length; ++i) { to[i] = to_float(from[i]); }
      if constexpr (feeds_back<Codec>) {
        alignas(64) float room[kept_room];
        auto const* const kept = read_kept(kept_place(span_.set.chunk(stream, index)), room);
        for (std::uint32_t i = 0; i < entry.length; ++i) {
          float const before = weighed<Codec>(machine, weight, to_float(kept[i]));
          to[i]              = args_.codec.feedback.before(machine, to[i], before);
        }
      }
      std::fill(to + entry.length, to + size, 0.0f);
    });
  }

  //! What the codes lost, to the residual.
  void keep() const
  {
    float const weight = weight_of_kept(args_);
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      std::uint64_t const chunk = span_.set.chunk(stream, index);
      chunk_entry const entry   = args_.table[chunk];
      float const step          = step_of(stream, index);
      if constexpr (in_metric<Codec>) {
        in_metric_units().keep(chunk, inverse_of(step), step);
        return;
      }
      std::uint32_t const draw = draw_of_kept(args_, chunk, args_.rank);
      float const* const all   = values(stream, index);
      float own[span_type::size];
      find_sent<size>(instructions_, all, inverse_of(step), step, own);
      alignas(64) float room[kept_room];
      auto* const place    = kept_place(chunk);
      auto* const residual = read_kept(place, room);
      using kept_type      = std::remove_pointer_t<decltype(read_kept(place, room))>;
      for (std::uint32_t i = 0; i < entry.length; ++i) {
        kept_type& kept    = residual[i];
        float const before = weighed<Codec>(machine, weight, to_float(kept));
        float const lost   = machine.subtract(all[i], own[i]);
        float const next   = args_.codec.feedback.after(machine, all[i], lost, before);
        kept               = kept_value<kept_type>(next, draw + i * draw_stride);
      }
      if constexpr (keeps_blocks<Codec>) {
        std::fill(room + entry.length, room + size, 0.0f);
        keep_chunk(machine, room, draw, *place);
      }
    });
  }

  //! What owners kept of the last sums, to these, which are shares of the mean.
  void add_kept_by_owner() const
  {
    [[maybe_unused]] float const weight = weight_of_kept(args_);
    float const share                   = machine.divide(1.0f, static_cast<float>(args_.world));
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      alignas(64) float room[kept_room];
      auto const* const kept = read_kept(owner_place(index), room);
      float* const sums      = values(stream, index);
      for (std::uint32_t i = 0; i < span_type::size; ++i) {
        float const before = weighed<Codec>(machine, weight, to_float(kept[i]));
        sums[i]            = machine.add(sums[i], machine.multiply(before, share));
      }
    });
  }

  //! What the codes of the mean lost of the sum, to the owner's residual.
  void keep_at_owner() const
  {
    auto const world = static_cast<float>(args_.world);
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      std::uint64_t const chunk = std::uint64_t{index} * static_cast<std::uint32_t>(args_.world) +
                                  static_cast<std::uint32_t>(args_.rank);
      std::uint32_t const draw = draw_of_kept(args_, chunk, second_rank);
      float const* const all   = values(stream, index);
      float const step         = step_of(stream, index);
      alignas(64) float lost[span_type::size];
      find_sent<size>(instructions_, all, inverse_of(step), step, lost);
      auto* const to = owner_place(index);
      for (std::uint32_t i = 0; i < span_type::size; ++i) {
        lost[i] = machine.multiply(machine.subtract(all[i], lost[i]), world);
      }
      if constexpr (keeps_blocks<Codec>) {
        keep_chunk(machine, lost, draw, *to);
      } else {
        for (std::uint32_t i = 0; i < span_type::size; ++i) {
          to[i] = kept_value<residual_element<Codec>>(lost[i], draw + i * draw_stride);
        }
      }
    });
  }

  //! Sums to the mean.
  void give_back() const
  {
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      if constexpr (in_metric<Codec>) {
        in_metric_units().give_back(span_.set.chunk(stream, index), values(stream, index));
        return;
      }
      chunk_entry const entry = args_.table[span_.set.chunk(stream, index)];
      float const* const from = values(stream, index);
      Element* const to       = args_.gradient + entry.offset;
      if (find_peak<size>(instructions_, from) >= 0x7f800000u) { raise_flag(args_); }
      for (std::uint32_t i = 0; i < entry.length; ++i) {
        to[i] = finite_from_float<Element>(from[i]);
      }
    });
  }

 private:
  using base::args_;
  using base::each_chunk;
  using base::instructions_;
  using base::inverse_of;
  using base::machine;
  using base::size;
  using base::span_;
  using base::step_of;
  using base::threads_;
  using base::values;

  //! Room for what was kept where it lies in blocks.
  static constexpr std::size_t kept_room = keeps_blocks<Codec> ? size : 1;

  //! Where the rank keeps what a chunk lost.
  [[nodiscard]] residual_element<Codec>* kept_place(std::uint64_t chunk) const
  {
    return args_.residual + (keeps_blocks<Codec> ? chunk : args_.table[chunk].offset);
  }
  //! Where the owner keeps what its chunk of this number lost.
  [[nodiscard]] residual_element<Codec>* owner_place(std::uint32_t index) const
  {
    return args_.parts.owner_residual +
           (keeps_blocks<Codec> ? index : owned_place<Codec>(index, 0));
  }
  //! What was kept as an array of numbers: itself, or in `room`.
  [[nodiscard]] static auto* read_kept(residual_element<Codec>* kept,
                                       [[maybe_unused]] float (&room)[kept_room])
  {
    if constexpr (keeps_blocks<Codec>) {
      kept_of_chunk(machine, *kept, room);
      return static_cast<float*>(room);
    } else {
      return kept;
    }
  }
  [[nodiscard]] auto in_metric_units() const
  {
    return cpu_stream_metric<Codec, Element>{threads_, instructions_, args_};
  }
};

template <entropy_coding Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  if (work.plan.chunks() == 0) { return {}; }
  cpu_streams<Codec, Element> const streams{work, work.plan.sent(), work.args.payload};
  streams.fill();
  streams.encode();
  return {};
}

//! This rank's part of the mean.
template <class Codec, class Element>
[[nodiscard]] cpu_streams<Codec, Element> streams_of_mean(cpu_work<Codec, Element> const& work)
{
  stream_set const mean = work.plan.mean();
  auto* const own       = work.args.parts.gathered + work.args.rank * mean.words;
  return {work, mean, own, true};
}

template <entropy_coding Codec, class Element>
[[nodiscard]] status run_stage(stage::recompress, cpu_work<Codec, Element> const& work)
{
  if (work.plan.chunks() == 0 || !completes_part(work.args)) { return {}; }
  cpu_streams<Codec, Element> const all{work, work.plan.received(), work.args.parts.received, true};
  all.find_chunks();
  all.add();
  if constexpr (owner_feeds_back<Codec>) { all.add_kept_by_owner(); }
  streams_of_mean(work).encode();
  return {};
}

template <entropy_coding Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  if (work.plan.chunks() == 0) { return {}; }
  cpu_streams<Codec, Element> const all{work, work.plan.gathered(), work.args.parts.gathered};
  all.find_chunks();
  if constexpr (feeds_back<Codec>) {
    if (!step_is_poisoned(work.args)) {
      cpu_streams<Codec, Element>{work, work.plan.sent(), work.args.payload}.keep();
    }
  }
  if constexpr (owner_feeds_back<Codec>) {
    // The mean's values may lie where sums will.
    if (!step_is_poisoned(work.args)) { streams_of_mean(work).keep_at_owner(); }
  }
  all.add();
  all.give_back();
  return {};
}

}  // namespace tersum::inline v0::detail
