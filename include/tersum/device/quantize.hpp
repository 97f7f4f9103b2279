// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Values to packed codes, chunk by chunk, and back.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/gradient_memory.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

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
                              std::span<std::uint32_t> words);

//! @brief values[..] = step of the chunk times the sum of the codes of `world` ranks.
//!
//! *Reads* `words` and one step a chunk, *writes* `values`, all in the executor's memory; they must not overlap. Elements of
//! 16 bits are rounded to the nearest one that is finite. *Needs* no workspace. *Errors*: those of `quantize`, and a world that
//! the lanes of `reducer` cannot hold. A step that is NaN makes NaNs of its chunk.
//!
//! The values are those of a `codec` of these policies without a rotation, on every executor. Enqueued; does not synchronize.
//! @param quantizer  What made the codes.
//! @param reducer    What added them.
//! @param world      How many ranks' codes the words sum, 1 or more.
//! @param steps      Of each chunk; `chunk_step::decode` makes the mean over the world.
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
                                Quantizer const& quantizer,
                                Reducer const& reducer,
                                std::span<std::uint32_t const> words,
                                int world,
                                std::span<float const> steps,
                                Values&& values);

}  // namespace tersum::inline v0

#include <tersum/device/detail/quantize.ipp>
