// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products of blocks on the CPU, compiled for each instruction set from one source, and the choice among them.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/config.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

inline constexpr int low_rank_block =
  64;  //!< Rows or columns of a matrix that a product takes at once.

#define TERSUM_SIMD_SOURCE <tersum/lowrank/detail/cpu_low_rank_kernels.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

// clang-format off
TERSUM_KERNEL(multiply_block)
TERSUM_KERNEL(transpose_block)
TERSUM_KERNEL(keep_bounded_residual)
TERSUM_KERNEL(gram_block)
TERSUM_KERNEL(dot_product)
TERSUM_KERNEL(subtract_column)
TERSUM_KERNEL(eliminate_row)
// clang-format on

#undef TERSUM_DISPATCH
#undef TERSUM_KERNEL
#undef TERSUM_SIMD_SOURCE

}  // namespace tersum::inline v0::detail
