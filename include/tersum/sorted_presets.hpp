// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Named codecs that sort the rows and columns of matrices: values to make plans from.

#pragma once

#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/entropy_codec.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/sorted_codec.hpp>
#include <tersum/two_shot_codec.hpp>

namespace tersum::inline v0::presets {

// clang-format off

//! @name Sorted matrices in two shots, with a width of 0 to 8 bits, or of 16, for every chunk; bits per coordinate in the name
//! Norms, scales and the keys of rows and columns are among the bits. For gradients with rows and columns of unlike sizes, or of
//! zeros: they need `layout::tensors`. `sorted_1` to `sorted_4` have the least error; `sorted_balanced_2` weighs energies by their square
//! root, so that small chunks get more, for adaptive optimizers.
//! @{
using sorted_two_shot = sorted_codec<two_shot_codec<allocated_chunks<512, 1, 2, 3, 4, 6, 8, 16>, partial_hadamard<512>, lloyd_max<8>>>;
inline constexpr sorted_two_shot sorted_1{.inner = {.chunker = {.bits = 1}}};
inline constexpr sorted_two_shot sorted_2{.inner = {.chunker = {.bits = 2}}};
inline constexpr sorted_two_shot sorted_3{.inner = {.chunker = {.bits = 3}}};
inline constexpr sorted_two_shot sorted_4{.inner = {.chunker = {.bits = 4}}};
inline constexpr sorted_two_shot sorted_balanced_2{.inner = {.chunker = {.bits = 2, .weighting = 0.5f}}};
//! @}

//! @name Sorted matrices in codes of unlike lengths, in two shots; keys are paid from the bits
//! @{
inline constexpr sorted_codec<entropy_two_shot_codec<>> sorted_entropy_2{.inner = {.bits = 2}};
//! @}

// clang-format on

}  // namespace tersum::inline v0::presets
