// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The randomized Hadamard transform of a whole tensor: what partial rotation is compared with.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/stages.hpp>

namespace tersum::inline v0 {

namespace stage {

//! Rotates the gradient into the workspace.
struct rotate_tensors : of_part<exchange_part::measure> {};

//! Rotates the decoded mean back, into the gradient.
struct rotate_tensors_back : of_part<exchange_part::decode> {};

}  // namespace stage

//! @brief Rotates each tensor in pieces whose numbers of chunks are descending powers of two. Only the last chunk is
//! padded.
//!
//! A piece stands for a tensor in docs/wire_format.md; 382 chunks are pieces of 256, 64, 32, 16, 8, 4 and 2. Forward, the butterflies go over all
//! bits of the index in the piece, ascending; backward over groups of five bits (0 to 4, 5 to 9, ...), the highest first, ascending within.
//! It exists to measure what partial rotation saves: it takes several passes through memory, and a float of workspace
//! per padded coordinate. A value that is not finite makes NaN of its whole piece. Source: Li et al., THC (NSDI'24).
struct full_hadamard {
  template <int Chunk>
  using packed = block_hadamard<Chunk, false>;  //!< Chunks are rotated already.
  static constexpr int rotation_size = 0;       //!< As long as the tensor.
  constexpr description describe() const { return {"full_hadamard"}; }

  using stages_before = stage_list<stage::rotate_tensors>;       //!< The gradient is measured.
  using stages_after  = stage_list<stage::rotate_tensors_back>;  //!< It was decoded.
};

static_assert(rotator<full_hadamard>, "tersum: must model tersum::rotator");

}  // namespace tersum::inline v0

#include <tersum_baselines/detail/full_hadamard.ipp>
