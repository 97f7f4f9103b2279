// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of `entropy_codec` on the CPU.

#pragma once

#include <tersum/block/detail/host_machine.hpp>
#include <tersum/entropy_codec.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/cpu/cpu_stream_kernels.hpp>
#include <tersum/exchange/detail/cpu/cpu_stream_metric.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/feedback/detail/byte_block.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Streams on `threads` threads. The bits of a chunk are counted for each step that is tried; their sums are integers, so
//! the order of threads is not seen.
template <class Codec, class Element>
class cpu_streams {
 public:
  using span_type = stream_span<false, Codec::chunk_size>;

  cpu_streams(cpu_work<Codec, Element> const& work,
              stream_set const& set,
              std::uint32_t* words,
              bool of_mean = false)
    : threads_{work.threads}, instructions_{work.instructions}, args_{work.args},
      span_{set, work.plan.memory_of_streams(work.args.parts.gathered, of_mean), words}
  {
  }

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

  //! Values to streams.
  void encode() const
  {
    each_chunk([&](std::uint32_t stream, std::uint32_t index) {
      *span_.bits(stream, index) = find_peak<size>(instructions_, values(stream, index));
    });
    for (std::uint32_t stream = 0; stream < span_.set.streams; ++stream) { encode(stream); }
  }

  //! Where the bits of all chunks begin; whether a value was not finite.
  void find_chunks() const
  {
    parallel_for(threads_, span_.set.streams * span_.set.copies, [&](std::uint64_t part) {
      if (!find_places(static_cast<std::uint32_t>(part))) { raise_flag(args_); }
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

  //! Streams to sums.
  void add() const
  {
    std::uint32_t const streams = span_.set.streams;
    std::uint64_t const groups  = (span_.set.chunks_of(0) + group - 1) / group;
    parallel_for(threads_, groups * streams, [&](std::uint64_t i) {
      add_group(static_cast<std::uint32_t>(i % streams),
                static_cast<std::uint32_t>(i / streams) * group);
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
  static constexpr host_machine machine{};
  static constexpr int size = Codec::chunk_size;
  //! Chunks that a thread adds at once: their sums stay in its cache.
  static constexpr std::uint32_t group = 16;

  //! Room for what was kept where it lies in blocks.
  static constexpr std::size_t kept_room = keeps_blocks<Codec> ? size : 1;

  //! Where the rank keeps what a chunk lost.
  [[nodiscard]] residual_element<Codec>* kept_place(std::uint64_t chunk) const
  {
    if constexpr (keeps_blocks<Codec>) {
      return args_.residual + chunk;
    } else {
      return args_.residual + args_.table[chunk].offset;
    }
  }
  //! Where the owner keeps what its chunk of this number lost.
  [[nodiscard]] residual_element<Codec>* owner_place(std::uint32_t index) const
  {
    return args_.parts.owner_residual +
           (keeps_blocks<Codec> ? index : owned_place<Codec>(index, 0));
  }
  //! The step of a chunk of this rank; 0 if nothing of it was sent.
  [[nodiscard]] float step_of(std::uint32_t stream, std::uint32_t index) const
  {
    bool const finer = has_finer_step(machine, args_, span_, stream, index);
    bool const sent  = machine.load(span_.length(stream, index)) != 0;
    return sent ? bits_float(span_.part(stream)[finer ? 1 : 0]) : 0.0f;
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
  [[nodiscard]] float* values(std::uint32_t stream, std::uint32_t index) const
  {
    return span_.values(stream, index).first;
  }
  [[nodiscard]] static float inverse_of(float step)
  {
    return step > 0.0f ? machine.divide(1.0f, step) : 0.0f;
  }

  template <class Body>
  void each_chunk(Body const& body) const
  {
    std::uint32_t const streams = span_.set.streams;
    parallel_for(threads_, span_.set.chunks, [&](std::uint64_t chunk) {
      body(static_cast<std::uint32_t>(chunk % streams),
           static_cast<std::uint32_t>(chunk / streams));
    });
  }

  //! @name What is known of a chunk while its step is sought
  //! The upper half of its word is that of its largest magnitude, the lower half its bits under the step that was tried last.
  //! @{
  [[nodiscard]] bool is_finite_chunk(std::uint32_t stream, std::uint32_t index) const
  {
    return *span_.bits(stream, index) < 0x7f800000u;
  }
  [[nodiscard]] std::uint32_t tried_length(std::uint32_t stream, std::uint32_t index) const
  {
    return *span_.bits(stream, index) & 0xffffu;
  }
  //! Bits under the step with this inverse.
  std::uint32_t try_step(std::uint32_t stream, std::uint32_t index, float inverse) const
  {
    std::uint32_t& word      = *span_.bits(stream, index);
    std::uint32_t const peak = word | 0xffffu;
    word                     = peak ^ 0xffffu;
    word |= bits_of_chunk<size>(instructions_, values(stream, index), peak, inverse);
    return word & 0xffffu;
  }
  //! @}

  //! Calls body(begin, end) for stretches of the chunks of a stream.
  template <class Body>
  void each_stretch(std::uint32_t stream, Body const& body) const
  {
    constexpr std::uint64_t stretch = 64;
    std::uint64_t const chunks      = span_.set.chunks_of(stream);
    parallel_for(threads_, (chunks + stretch - 1) / stretch, [&](std::uint64_t i) {
      body(static_cast<std::uint32_t>(i * stretch),
           static_cast<std::uint32_t>(std::min(chunks, (i + 1) * stretch)));
    });
  }

  //! Whether the bits of a stream with a step fit. Where they do not, the rest is not counted.
  [[nodiscard]] bool fits_with(std::uint32_t stream, float step) const
  {
    std::uint64_t all   = 0;
    float const inverse = inverse_of(step);
    each_stretch(stream, [&](std::uint32_t begin, std::uint32_t end) {
      if (__atomic_load_n(&all, __ATOMIC_RELAXED) > span_.set.bits()) { return; }
      std::uint64_t sum = 0;
      for (std::uint32_t index = begin; index < end; ++index) {
        sum += try_step(stream, index, inverse);
      }
      __atomic_fetch_add(&all, sum, __ATOMIC_RELAXED);
    });
    return all <= span_.set.bits();
  }

  //! Keeps the lengths of the step that was tried last.
  void keep_lengths(std::uint32_t stream) const
  {
    each_stretch(stream, [&](std::uint32_t begin, std::uint32_t end) {
      for (std::uint32_t index = begin; index < end; ++index) {
        std::uint32_t const length =
          is_finite_chunk(stream, index) ? tried_length(stream, index) : stream_set::not_finite;
        machine.store(span_.length(stream, index), static_cast<std::uint16_t>(length));
      }
    });
  }

  //! The finest step whose codes fit, as `stream_search` says, and the lengths of chunks with it.
  void find_step(std::uint32_t stream, stream_search& search) const
  {
    search.peak = 0;
    for (std::uint32_t index = 0; index < span_.set.chunks_of(stream); ++index) {
      std::uint32_t& word = *span_.bits(stream, index);
      if (word < 0x7f800000u) { search.peak = std::max(search.peak, word); }
      word = word >> 16 << 16;
    }
    keep_lengths(stream);
    search.number = 0;
    for (std::uint32_t half_of = stream_search::numbers / 2; half_of > 0; half_of /= 2) {
      float const step = step_of_number(machine, search.peak, search.number + half_of);
      if (step > 0.0f && fits_with(stream, step)) {
        search.number += half_of;
        keep_lengths(stream);
      }
    }
  }

  void encode(std::uint32_t stream) const
  {
    stream_search& search      = span_.memory.searches[stream];
    std::uint32_t* const words = span_.part(stream);
    std::fill_n(words, span_.set.words, 0u);
    find_step(stream, search);
    float const steps[2] = {step_of_number(machine, search.peak, search.number),
                            step_of_number(machine, search.peak, search.number + 1)};
    words[0]             = float_bits(steps[0]);
    words[1]             = float_bits(steps[1]);
    take_finer(stream, search, inverse_of(steps[1]));
    find_places(stream);
    parallel_for(threads_, span_.set.chunks_of(stream), [&](std::uint64_t i) {
      auto const index           = static_cast<std::uint32_t>(i);
      std::uint32_t const length = machine.load(span_.length(stream, index));
      if (length == 0 || length == stream_set::not_finite) { return; }
      bool const finer = has_finer_step(machine, args_, span_, stream, index);
      write_chunk<size>(instructions_,
                        values(stream, index),
                        inverse_of(steps[finer ? 1 : 0]),
                        finer,
                        words + span_.set.head,
                        *span_.bits(stream, index));
    });
  }

  //! Gives chunks the finer step, one after the other in their turn, until one has no room.
  //! @param inverse  One over that step; 0 if there is none.
  void take_finer(std::uint32_t stream, stream_search& search, float inverse) const
  {
    std::uint32_t const chunks = span_.set.chunks_of(stream);
    std::uint64_t used         = 0;
    std::uint32_t first        = 0;
    for (std::uint32_t index = 0; index < chunks; ++index) {
      std::uint32_t const length = machine.load(span_.length(stream, index));
      used += length == stream_set::not_finite ? 0u : length;
      if (span_.set.turn(stream, index, args_.header->step) == 0) { first = index; }
    }
    auto const in_turn = [&](std::uint64_t turn) {
      return static_cast<std::uint32_t>((first + turn) % chunks);
    };
    // How many threads try it before it is known where the room ends.
    std::uint32_t const at_once = threads_ > 1 ? 64 * static_cast<std::uint32_t>(threads_) : 1;
    search.finer                = 0;
    for (std::uint32_t tried = 0; inverse > 0.0f && search.finer < chunks; ++search.finer) {
      if (search.finer == tried) {
        std::uint32_t const more = std::min(at_once, chunks - tried);
        parallel_for(
          threads_, more, [&](std::uint64_t i) { try_step(stream, in_turn(tried + i), inverse); });
        tried += more;
      }
      std::uint32_t const index = in_turn(search.finer);
      if (!is_finite_chunk(stream, index)) { continue; }
      std::uint32_t const next     = tried_length(stream, index);
      std::uint64_t const all_with = used - machine.load(span_.length(stream, index)) + next;
      if (all_with > span_.set.bits()) { break; }
      used = all_with;
      machine.store(span_.length(stream, index), static_cast<std::uint16_t>(next));
    }
  }

  //! Where the bits of the chunks of a part begin.
  //! @return  Whether all values are finite.
  bool find_places(std::uint32_t part) const
  {
    bool finite        = true;
    std::uint32_t next = 0;
    for (std::uint32_t index = 0; index < span_.set.chunks_of(part / span_.set.copies); ++index) {
      std::uint32_t const length = machine.load(span_.length(part, index));
      *span_.bits(part, index)   = next;
      if (length == stream_set::not_finite) {
        finite = false;
      } else {
        next += length;
      }
    }
    return finite;
  }

  //! What `add_chunk` does, of up to `group` chunks of a stream from this one on.
  void add_group(std::uint32_t stream, std::uint32_t begin) const
  {
    std::uint32_t const chunks = span_.set.chunks_of(stream);
    std::uint32_t const count  = std::min(chunks - std::min(begin, chunks), group);
    float const share          = machine.divide(1.0f, static_cast<float>(span_.set.copies));
    read_item items[group];
    bool finite[group];
    for (std::uint32_t i = 0; i < count; ++i) {
      items[i].sums = values(stream, begin + i);
      finite[i]     = true;
      std::fill_n(items[i].sums, size, 0.0f);
    }
    for (std::uint32_t copy = 0; copy < span_.set.copies; ++copy) {
      std::uint32_t const part         = stream * span_.set.copies + copy;
      std::uint32_t const* const words = span_.part(part);
      for (std::uint32_t i = 0; i < count; ++i) {
        std::uint32_t const length = machine.load(span_.length(part, begin + i));
        finite[i]                  = finite[i] && length != stream_set::not_finite;
        items[i].from              = *span_.bits(part, begin + i);
        items[i].bits              = finite[i] ? length : 0u;
      }
      float const steps[2] = {machine.multiply(bits_float(words[0]), share),
                              machine.multiply(bits_float(words[1]), share)};
      add_chunks<size>(
        words + span_.set.head, span_.set.words - span_.set.head, steps, {items, count});
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!finite[i]) { std::fill_n(items[i].sums, size, bits_float(0x7fffffffu)); }
    }
  }

  int threads_;
  instruction_set instructions_;
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
  auto const& parts = work.args.parts;
  if (work.plan.chunks() == 0 || !completes_part(work.args)) { return {}; }
  cpu_streams<Codec, Element> const all{work, work.plan.received(), parts.received, true};
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
