// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Values to packed codes, chunk by chunk, and back.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/device/detail/quantize_kernels.hpp>
#include <tersum/exchange/gradient_memory.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/quantize/detail/coding.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tersum::inline v0 {

//! @brief Words of the packed codes of so many coordinates, in whole chunks.
template <chunker Chunker, reducer Reducer>
[[nodiscard]] constexpr std::size_t packed_words(Chunker const&,
                                                 Reducer const&,
                                                 std::size_t coordinates) noexcept
{
  constexpr std::size_t size = Chunker::chunk_size;
  return detail::divide_up(coordinates, size) * (size / 32) * Reducer::lane_bits;
}

namespace detail {

//! Whether arrays can be quantized or dequantized; if not, the sentence names the argument. `factors` are scales or steps.
template <class Chunker, class Reducer, class Element, class Word>
[[nodiscard]] argument_check check_codes(Chunker const& chunker,
                                         Reducer const& reducer,
                                         std::span<Element> values,
                                         std::span<Word> words,
                                         std::span<float const> factors,
                                         std::string_view wrong_count,
                                         std::string_view wrong_address)
{
  static_assert(Chunker::chunk_size >= 128,
                "tersum: codes are those of chunks of 128 coordinates and more");
  std::size_t const size   = packed_words(chunker, reducer, values.size());
  std::size_t const chunks = size / (Chunker::chunk_size / 32 * Reducer::lane_bits);
  return argument_check{}
    .require(words.size() == size,
             "words has not packed_words(chunker, reducer, values.size()) elements")
    .require(factors.size() == chunks, wrong_count)
    .chunks(chunks)
    .address(values, alignof(Element), "values is a null pointer, or not aligned to its elements")
    .address(factors, alignof(float), wrong_address)
    .address(words, 16, "words is a null pointer, or not aligned to 16 bytes")
    .require(are_disjoint(values, words), "words overlaps values");
}

}  // namespace detail

//! @brief Rounds and packs an array: words[..] = the codes of `quantizer` in the lanes of `reducer`.
//!
//! *Reads* `values` and one scale a chunk, *writes* `words`, all in the executor's memory; they must not overlap. The last
//! chunk is padded with zeros. `values` needs the alignment of its elements; one that is aligned to 16 bytes is faster.
//! *Needs* no workspace. *Errors*: words.size() is not packed_words(chunker, reducer, values.size()), scales.size() is not
//! the number of chunks, 2^31 chunks or more, a null address, `words` not aligned to 16 bytes, an overlap.
//!
//! On every executor the words are those of a `codec` of these policies without a rotation; of rotated values, and scales of
//! `make_chunk_step<partial_hadamard<C>, Quantizer>`, those of one that rotates. Enqueued on the executor; does not synchronize.
//! @param chunker    `fixed_chunks<C>` with a C from 128 to 32768.
//! @param quantizer  `stochastic_quantizer<q>`, `nearest_quantizer<q>`, or one of your own; see the concept.
//! @param reducer    `saturating_sum<b>`, `widening_sum<q, b>` or `guard_lanes<b>`.
//! @param scales     `chunk_step::encode` of each chunk: 2^fraction_bits over its step; a value times its scale must stay
//!                   below 2^23. 0 makes zeros of any values.
//! @param key        Seed, step and rank of the dither.
//!
//! @par Example
//! @snippet examples/05_rotate_and_quantize.cpp encode
template <executor Executor,
          chunker Chunker,
          quantizer Quantizer,
          reducer Reducer,
          gradient_values Values>
[[nodiscard]] status quantize(Executor const& exec,
                              Chunker const& chunker,
                              Quantizer const& quantizer,
                              Reducer const& reducer,
                              Values const& values,
                              std::span<float const> scales,
                              dither_key const& key,
                              std::span<std::uint32_t> words)
{
  constexpr int size = Chunker::chunk_size;
  auto const from    = detail::span_of(values);
  using element      = typename decltype(from)::value_type;
  status const s     = detail::check_codes(chunker,
                                       reducer,
                                       from,
                                       words,
                                       scales,
                                       "scales has not one element for each chunk of values",
                                       "scales is a null pointer, or not aligned to its elements")
                     .require(detail::are_disjoint(scales, words), "words overlaps scales")
                     .result();
  if (!s.ok()) { return s; }
  return detail::perform(
    exec,
    [&](int threads, auto set) {
      constexpr int room = size / 32 * Reducer::lane_bits;
      detail::coding<size, Quantizer, Reducer> const codes{.coder = {.quantizer = quantizer}};
      detail::parallel_for(threads, scales.size(), [&](std::uint64_t chunk) {
        detail::with_whole_chunk<size>(from, chunk, [&]<class From>(From const* of) {
          detail::chunk_source<From> const source{of, nullptr};
          std::uint32_t* const to = words.data() + chunk * room;
          detail::encode_chunk(
            set, codes, key, std::uint64_t{0}, chunk, scales[chunk], of, source, to, nullptr);
        });
      });
    },
    [&](auto const& on) {
      using kernel = detail::quantize_kernel<size, Quantizer, Reducer, element>;
      return on.run(
        kernel{{}, quantizer, from.data(), from.size(), scales.data(), key, words.data()},
        kernel::chunk::blocks(from.size()));
    });
}

//! @brief values[..] = step of the chunk times the sum of the codes of `world` ranks.
//!
//! *Reads* `words` and one step a chunk, *writes* `values`, all in the executor's memory; they must not overlap. Elements of
//! 16 bits are rounded to the nearest one that is finite. *Needs* no workspace. *Errors*: those of `quantize`, and a world that
//! the lanes of `reducer` cannot hold. A step that is NaN makes NaNs of its chunk.
//!
//! The values are those of a `codec` of these policies without a rotation, on every executor. Enqueued; does not synchronize.
//! @param reducer  What added the codes, of the quantizer before it.
//! @param world    How many ranks' codes the words sum, 1 or more.
//! @param steps    Of each chunk; `chunk_step::decode` makes the mean over the world.
//!
//! @par Example
//! @snippet examples/05_rotate_and_quantize.cpp decode
template <executor Executor,
          chunker Chunker,
          quantizer Quantizer,
          reducer Reducer,
          gradient_memory Values>
[[nodiscard]] status dequantize(Executor const& exec,
                                Chunker const& chunker,
                                Quantizer const&,
                                Reducer const& reducer,
                                std::span<std::uint32_t const> words,
                                int world,
                                std::span<float const> steps,
                                Values&& values)
{
  constexpr int size = Chunker::chunk_size;
  auto const to      = detail::span_of(values);
  using element      = typename decltype(to)::value_type;
  if (world > Reducer::max_world(Quantizer::max_level)) {
    return {error_code::world_too_large, "world is too large for the reducer's lanes"};
  }
  status const s = detail::check_codes(chunker,
                                       reducer,
                                       to,
                                       words,
                                       steps,
                                       "steps has not one element for each chunk of values",
                                       "steps is a null pointer, or not aligned to its elements")
                     .require(world >= 1, "world must be 1 or more")
                     .require(detail::are_disjoint(steps, to), "values overlaps steps")
                     .result();
  if (!s.ok()) { return s; }
  return detail::perform(
    exec,
    [&](int threads, auto set) {
      using codes        = detail::coding<size, Quantizer, Reducer>;
      constexpr int room = size / 32 * Reducer::lane_bits;
      detail::parallel_for(threads, steps.size(), [&](std::uint64_t chunk) {
        detail::write_whole_chunk<size>(to, chunk, [&](element* values_of) {
          chunk_step counts{};
          detail::decode_chunk<codes>(set,
                                      world,
                                      std::uint64_t{0},
                                      chunk,
                                      steps[chunk],
                                      words.data() + chunk * room,
                                      values_of,
                                      counts);
        });
      });
    },
    [&](auto const& on) {
      using kernel = detail::dequantize_kernel<size, Quantizer, Reducer, element>;
      return on.run(kernel{{}, words.data(), world, steps.data(), to.data(), to.size()},
                    kernel::chunk::blocks(to.size()));
    });
}

}  // namespace tersum::inline v0
