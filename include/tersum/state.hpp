// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What lives from step to step, in memory of the caller: seed, step, flags, head-room, residual. It is plain
//! data, so a copy of its bytes is a checkpoint.

#pragma once

#include <tersum/config.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! Of the bytes of states, below 256: the lowest byte of `plan::state_fingerprint()`, so that a header says it.
inline constexpr std::uint64_t state_version = 2;
static_assert(state_version < 256);

//! @brief The first bytes of a state. Read it back, or in a kernel, to see how the last exchange went.
struct state_header {
  std::uint64_t seed;  //!< The run's seed, the same on every rank.
  std::uint64_t step;  //!< Exchanges finished since `initialize`.
  std::uint64_t
    non_finite_step;  //!< Number, from 1, of the last exchange in which a gradient held NaN or Inf.
  std::uint64_t tensors;  //!< Records that follow.
  std::uint64_t
    chunks;  //!< Entries of the chunk table, which follows the records; low rank: matrices.
  std::uint64_t coordinates;  //!< Length of the gradient, and of the residual if there is one.
  std::uint64_t sign_key;     //!< The key of the rotation's signs in the current step.
  std::uint64_t layout;       //!< `plan::state_fingerprint()`.

  //! Whether a rank's gradient held NaN or Inf in the last exchange: the same answer on every rank.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr bool last_was_non_finite() const noexcept
  {
    return step != 0 && non_finite_step == step;
  }

  //! `state_version` of the library that initialized it. Version 1 had any number in its place.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t version() const noexcept
  {
    return layout % 256;
  }
};
static_assert(sizeof(state_header) == 64);

//! @brief One tensor as kernels see it.
struct tensor_record {
  std::uint64_t offset;       //!< First coordinate in the gradient.
  std::uint64_t size;         //!< Coordinates.
  std::uint64_t first_chunk;  //!< Its first chunk on the wire; unused when it bypasses.
  std::uint64_t chunks;       //!< Its chunks; 0 when it bypasses the codec.
  std::uint64_t bypass;       //!< If it bypasses: its first element among the bypassed coordinates.
  //! sqrt(|sum|^2 / energy of one rank) of the last exchange; world.size before the first, and where nothing tracks it.
  float ratio;
  float weight;             //!< `tensor::weight`.
  std::uint64_t saturated;  //!< Lanes of the last sum that are at a limit of a saturating reducer.
  //! Within a kernel whose blocks add up the tensor: how many of them have arrived. Otherwise 0.
  std::uint32_t arrived;
  std::uint32_t padding;
};
static_assert(sizeof(tensor_record) == 64);

//! @brief Where one chunk of the wire lies in the gradient.
struct chunk_entry {
  std::uint64_t offset;  //!< First coordinate.
  std::uint32_t length;  //!< Coordinates, at most the chunk size; the rest is zeros.
  std::uint32_t tensor;  //!< Its record.
};
static_assert(sizeof(chunk_entry) == 16);

//! @brief Which chunks a rank is sent under `shard`, or sends under `publish`, and where they lie among the parts.
struct shard_record {
  std::uint64_t word;    //!< First word of the rank's part.
  std::uint32_t first;   //!< Its first chunk.
  std::uint32_t chunks;  //!< Its chunks: those that its shard has a coordinate of.
};
static_assert(sizeof(shard_record) == 16);

}  // namespace tersum::inline v0
