// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The squared norm of every chunk of an array.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/device/arrays.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! @brief Chunks of an array, the last of which may be short.
template <chunker Chunker>
[[nodiscard]] constexpr std::size_t chunk_count(Chunker const&, std::size_t coordinates) noexcept
{
  constexpr std::size_t size = Chunker::chunk_size;
  return coordinates / size + (coordinates % size != 0 ? 1 : 0);
}

//! @brief norms[c] = the sum of the squares of values[c C .. c C + C - 1], with C = Chunker::chunk_size.
//!
//! *Reads* `values`, *writes* `norms`, both of the executor's memory; they must not overlap. `values` needs the alignment of
//! its elements; one that is aligned to 16 bytes is faster. *Needs* no workspace. *Errors*: norms.size() is not
//! chunk_count(chunker, values.size()), 2^31 chunks or more, a null or misaligned address, an overlap.
//!
//! The sums are those that an exchange agrees on, to the bit, on every executor: 256 accumulators a chunk, chained by fused
//! multiply-adds, then added pairwise. The norm of a chunk is not finite if one of its values is not, or if the sum of squares
//! exceeds the range of float. Enqueued on the executor; does not synchronize.
//! @param chunker  `fixed_chunks<C>`, or any other with a `chunk_size`: a power of two, 32 or more.
//!
//! @par Example
//! @snippet examples/05_rotate_and_quantize.cpp agree
template <executor Executor, chunker Chunker, readable_values Values>
[[nodiscard]] status chunk_norms(Executor const& exec,
                                 Chunker const& chunker,
                                 Values const& values,
                                 std::span<float> norms);

}  // namespace tersum::inline v0

#include <tersum/device/detail/chunk_norms.ipp>
