// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The search of `entropy_codec` for steps whose codes fit, on the CPU.

#pragma once

#include <tersum/block/detail/host_machine.hpp>
#include <tersum/entropy_codec.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/cpu/cpu_stream_kernels.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Streams on `threads` threads. The bits of a chunk are counted for each step that is tried; their sums are integers, so
//! the order of threads is not seen.
template <class Codec, class Element>
class cpu_stream_search {
 public:
  using span_type = stream_span<false, Codec::chunk_size>;

  cpu_stream_search(cpu_work<Codec, Element> const& work,
                    stream_set const& set,
                    std::uint32_t* words,
                    bool of_mean = false)
    : threads_{work.threads}, instructions_{work.instructions}, args_{work.args},
      span_{set, work.plan.memory_of_streams(work.args.parts.gathered, of_mean), words}
  {
  }

 protected:
  static constexpr host_machine machine{};
  static constexpr int size = Codec::chunk_size;

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

  int threads_;
  instruction_set instructions_;
  exchange_args<Codec, Element> const& args_;
  span_type span_;
};

}  // namespace tersum::inline v0::detail
