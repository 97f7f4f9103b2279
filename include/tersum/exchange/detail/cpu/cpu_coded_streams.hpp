// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codes of an `entropy_codec` on the CPU: values to streams, and streams to sums.

#pragma once

#include <tersum/block/detail/host_machine.hpp>
#include <tersum/exchange/detail/cpu/cpu_stream_kernels.hpp>
#include <tersum/exchange/detail/cpu/cpu_stream_search.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/execute/detail/parallel_for.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Streams that are written and read.
template <class Codec, class Element>
class cpu_coded_streams : public cpu_stream_search<Codec, Element> {
 public:
  using base = cpu_stream_search<Codec, Element>;
  using base::base;

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
      if (!this->find_places(static_cast<std::uint32_t>(part))) { raise_flag(args_); }
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

 protected:
  using base::args_;
  using base::each_chunk;
  using base::instructions_;
  using base::inverse_of;
  using base::machine;
  using base::size;
  using base::span_;
  using base::threads_;
  using base::values;

  //! The step of a chunk of this rank; 0 if nothing of it was sent.
  [[nodiscard]] float step_of(std::uint32_t stream, std::uint32_t index) const
  {
    bool const finer = has_finer_step(machine, args_, span_, stream, index);
    bool const sent  = machine.load(span_.length(stream, index)) != 0;
    return sent ? bits_float(span_.part(stream)[finer ? 1 : 0]) : 0.0f;
  }

 private:
  //! Chunks that a thread adds at once: their sums stay in its cache.
  static constexpr std::uint32_t group = 16;

  void encode(std::uint32_t stream) const
  {
    stream_search& search      = span_.memory.searches[stream];
    std::uint32_t* const words = span_.part(stream);
    std::fill_n(words, span_.set.words, 0u);
    this->find_step(stream, search);
    float const steps[2] = {step_of_number(machine, search.peak, search.number),
                            step_of_number(machine, search.peak, search.number + 1)};
    words[0]             = float_bits(steps[0]);
    words[1]             = float_bits(steps[1]);
    this->take_finer(stream, search, inverse_of(steps[1]));
    this->find_places(stream);
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
};

}  // namespace tersum::inline v0::detail
