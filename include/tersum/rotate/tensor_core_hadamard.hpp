// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! `partial_hadamard` with half the instructions where a GPU encodes 16-bit gradients, at the price of equality with
//! the CPU.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

namespace tersum::inline v0 {

//! @brief The rotation of `partial_hadamard<Size>`, on tensor cores where that pays: when CUDA encodes half or bfloat16
//! without feedback, in chunks of 256, 512 or 1024; what ranks send in two shots, in chunks of 1024.
//!
//! Everywhere else (CPU, float, feedback, other sizes) it *is* `partial_hadamard<Size>`. On tensor cores the ten levels
//! of butterflies are two matrix products with sums in float32, and values are rounded to 11 bits between them. So the
//! root mean square of what rotated values are off is at most 2^-11 of that of the chunk, which for codes of 4 bits is
//! less than the dither resolves. A value that is that close to the boundary between two codes may get the other one. In two
//! shots the scale of a chunk, which its codes decide, follows.
//! Layout, signs, dither, agreed scalars and decoding are those of `partial_hadamard<Size>`, so ranks may mix both and
//! still end with equal bits. Source: HadaCore (Agarwal et al., arXiv 2412.08832) for Hadamard transforms as products
//! of 16 x 16 tiles.
//! @tparam Size  Coordinates in a rotation, a power of two from 128 to 32768; equal to the chunk.
template <int Size>
struct tensor_core_hadamard : partial_hadamard<Size> {
  static_assert(Size >= 128 && Size <= 32768 && (Size & (Size - 1)) == 0,
                "tersum: tensor_core_hadamard<Size> needs a power of two from 128 to 32768");
  static constexpr bool tensor_cores = true;
};

static_assert(rotator<tensor_core_hadamard<1024>>, "tersum: must model tersum::rotator");

}  // namespace tersum::inline v0
