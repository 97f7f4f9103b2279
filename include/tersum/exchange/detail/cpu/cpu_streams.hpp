// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of `entropy_codec` on the CPU.

#pragma once

#include <tersum/block/detail/host_machine.hpp>
#include <tersum/entropy_codec.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Streams on `threads` threads. A chunk is coded again for each step that is tried; the sums of bits are integers, so
//! the order of threads is not seen.
template <class Codec, class Element>
class cpu_streams {
 public:
  using span_type = stream_span<false, Codec::chunk_size>;

  cpu_streams(cpu_work<Codec, Element> const& work,
              stream_set const& set,
              std::uint32_t* words,
              bool of_mean = false)
    : threads_{work.threads}, args_{work.args},
      span_{set, work.plan.memory_of_streams(work.args.parts.gathered, of_mean), words}
  {
  }

  //! The gradient, with what was kept.
  void fill() const
  {
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      for (std::uint32_t quad = 0; quad < quads; ++quad) {
        fill_quad(machine, args_, span_, stream, index, quad);
      }
    });
  }

  //! Values to streams.
  void encode() const
  {
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      *span_.bits(stream, index) = peak_of(machine, span_.values(stream, index));
    });
    for (std::uint32_t stream = 0; stream < span_.set.streams; ++stream) { encode(stream); }
  }

  //! Where the bits of all chunks begin; whether a value was not finite.
  void find_chunks() const
  {
    for (std::uint32_t part = 0; part < span_.set.streams * span_.set.copies; ++part) {
      std::uint32_t next = 0;
      for (std::uint32_t index = 0; index < span_.set.chunks_of(part / span_.set.copies); ++index) {
        std::uint32_t const length = machine.load(span_.length(part, index));
        *span_.bits(part, index)   = next;
        if (length == stream_set::not_finite) {
          raise_flag(args_);
        } else {
          next += length;
        }
      }
    }
  }

  void keep() const
  {
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      for (std::uint32_t quad = 0; quad < quads; ++quad) {
        keep_quad(machine, args_, span_, stream, index, quad);
      }
    });
  }

  //! Streams to sums.
  void add() const
  {
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      add_chunk<Codec::chunk_size>(machine, span_, stream, index);
    });
  }

  //! Sums to the mean.
  void give_back() const
  {
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      for (std::uint32_t quad = 0; quad < quads; ++quad) {
        return_quad(machine, args_, span_, stream, index, quad);
      }
    });
  }

 private:
  static constexpr host_machine machine{};
  static constexpr std::uint32_t quads = span_type::size / 4;

  template <class Body>
  void each_chunk(Body const& body) const
  {
    std::uint32_t const streams = span_.set.streams;
    parallel_for(threads_, span_.set.chunks, [&](std::uint64_t chunk) {
      body(static_cast<std::uint32_t>(chunk % streams),
           static_cast<std::uint32_t>(chunk / streams));
    });
  }

  //! Whether the bits of a stream with a step fit. Where they do not, the rest is not counted.
  [[nodiscard]] bool fits_with(std::uint32_t stream, float step) const
  {
    std::uint64_t all               = 0;
    constexpr std::uint64_t stretch = 64;
    std::uint64_t const chunks      = span_.set.chunks_of(stream);
    parallel_for(threads_, (chunks + stretch - 1) / stretch, [&](std::uint64_t part) {
      if (__atomic_load_n(&all, __ATOMIC_RELAXED) > span_.set.bits()) { return; }
      std::uint64_t sum = 0;
      for (auto i = part * stretch; i < std::min(chunks, (part + 1) * stretch); ++i) {
        auto const index = static_cast<std::uint32_t>(i);
        auto const chunk = span_.values(stream, index);
        sum +=
          bits_of(machine, chunk, code_chunk(machine, chunk, *span_.bits(stream, index), step));
      }
      __atomic_fetch_add(&all, sum, __ATOMIC_RELAXED);
    });
    return all <= span_.set.bits();
  }

  //! The finest step whose codes fit, as `stream_search` says.
  void find_step(std::uint32_t stream, stream_search& search) const
  {
    std::uint32_t peak = 0;
    for (std::uint32_t index = 0; index < span_.set.chunks_of(stream); ++index) {
      std::uint32_t const own = *span_.bits(stream, index);
      if (own < 0x7f800000u) { peak = std::max(peak, own); }
    }
    std::uint32_t number = 0;
    for (std::uint32_t half_of = stream_search::numbers / 2; half_of > 0; half_of /= 2) {
      float const step = step_of_number(machine, peak, number + half_of);
      if (step > 0.0f && fits_with(stream, step)) { number += half_of; }
    }
    search.peak   = peak;
    search.number = number;
  }

  void encode(std::uint32_t stream) const
  {
    stream_search& search = span_.memory.searches[stream];
    find_step(stream, search);
    float const steps[2]       = {step_of_number(machine, search.peak, search.number),
                                  step_of_number(machine, search.peak, search.number + 1)};
    std::uint32_t* const words = span_.part(stream);
    std::uint32_t const chunks = span_.set.chunks_of(stream);
    std::fill_n(words, span_.set.words, 0u);
    words[0] = float_bits(steps[0]);
    words[1] = float_bits(steps[1]);
    parallel_for(threads_, chunks, [&](std::uint64_t i) {
      auto const index         = static_cast<std::uint32_t>(i);
      auto const chunk         = span_.values(stream, index);
      std::uint32_t const peak = *span_.bits(stream, index);
      auto const length        = [&](float step) {
        return bits_of(machine, chunk, code_chunk(machine, chunk, peak, step));
      };
      auto const coarse = peak < 0x7f800000u ? length(steps[0]) : stream_set::not_finite;
      machine.store(span_.length(stream, index), static_cast<std::uint16_t>(coarse));
      *span_.bits(stream, index) = length(steps[1]);
    });
    take_finer(stream, search, steps[1] > 0.0f);
    parallel_for(threads_, chunks, [&](std::uint64_t i) {
      auto const index           = static_cast<std::uint32_t>(i);
      std::uint32_t const length = machine.load(span_.length(stream, index));
      if (length == 0 || length == stream_set::not_finite) { return; }
      auto const chunk = span_.values(stream, index);
      bool const finer = has_finer_step(machine, args_, span_, stream, index);
      write_codes(machine,
                  chunk,
                  code_chunk(machine, chunk, machine.divide(1.0f, steps[finer ? 1 : 0])),
                  finer,
                  words + span_.set.head,
                  *span_.bits(stream, index));
    });
  }

  //! Gives chunks the finer step, one after the other in their turn, until one has no room. Then `bits` says where the bits of
  //! chunks begin instead of how many the finer step takes.
  void take_finer(std::uint32_t stream, stream_search& search, bool is_step) const
  {
    std::uint32_t const chunks = span_.set.chunks_of(stream);
    std::uint64_t used         = 0;
    std::uint32_t first        = 0;
    for (std::uint32_t index = 0; index < chunks; ++index) {
      std::uint32_t const length = machine.load(span_.length(stream, index));
      used += length == stream_set::not_finite ? 0u : length;
      if (span_.set.turn(stream, index, args_.header->step) == 0) { first = index; }
    }
    search.finer = 0;
    while (is_step && search.finer < chunks) {
      std::uint32_t const index  = (first + search.finer) % chunks;
      std::uint32_t const length = machine.load(span_.length(stream, index));
      if (length != stream_set::not_finite) {
        std::uint32_t const next = *span_.bits(stream, index);
        if (used - length + next > span_.set.bits()) { break; }
        used = used - length + next;
        machine.store(span_.length(stream, index), static_cast<std::uint16_t>(next));
      }
      ++search.finer;
    }
    std::uint32_t from = 0;
    for (std::uint32_t index = 0; index < chunks; ++index) {
      std::uint32_t const length = machine.load(span_.length(stream, index));
      *span_.bits(stream, index) = from;
      from += length == stream_set::not_finite ? 0u : length;
    }
  }

  int threads_;
  exchange_args<Codec, Element> const& args_;
  span_type span_;
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

template <entropy_coding Codec, class Element>
[[nodiscard]] status run_stage(stage::recompress, cpu_work<Codec, Element> const& work)
{
  auto const& parts = work.args.parts;
  if (work.plan.chunks() == 0 || !completes_part(work.args)) { return {}; }
  cpu_streams<Codec, Element> const all{work, work.plan.received(), parts.received, true};
  all.find_chunks();
  all.add();
  auto* const own = parts.gathered + work.args.rank * parts.part_words;
  cpu_streams<Codec, Element>{work, work.plan.mean(), own, true}.encode();
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
  all.add();
  all.give_back();
  return {};
}

}  // namespace tersum::inline v0::detail
