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

//! @brief to[a][lane] += sum over `terms` of factors[a * stride + t * step] * tile[t][lane]; 64 lanes.
inline void multiply_block(instruction_set set,
                           float const* factors,
                           std::size_t stride,
                           std::size_t step,
                           int rows,
                           int terms,
                           float const* tile,
                           float* to)
{
  TERSUM_DISPATCH(set, true, multiply_block(factors, stride, step, rows, terms, tile, to));
}

//! @brief to[j][i] = from[i][j]; 64 by 64.
inline void transpose_block(instruction_set set, float const* from, float* to)
{
  TERSUM_DISPATCH(set, true, transpose_block(from, to));
}

//! @brief residual[i] = kept_of_matrix(whole[i] - sent[i]).
inline void keep_bounded_residual(
  instruction_set set, float const* whole, float const* sent, float* residual, std::size_t count)
{
  TERSUM_DISPATCH(set, true, keep_bounded_residual(whole, sent, residual, count));
}

//! @brief gram[k][l] += sum over 64 terms t of tile[t][k] * tile[t][l], l not below k; rows of `max_rank`.
inline void gram_block(instruction_set set, double const* tile, int rank, double* gram)
{
  TERSUM_DISPATCH(set, true, gram_block(tile, rank, gram));
}

[[nodiscard]] inline double dot_product(instruction_set set,
                                        float const* a,
                                        float const* b,
                                        std::uint64_t count)
{
  TERSUM_DISPATCH(set, true, dot_product(a, b, count));
}

inline void subtract_column(
  instruction_set set, float* to, double share, float const* from, std::uint64_t count)
{
  TERSUM_DISPATCH(set, true, subtract_column(to, share, from, count));
}

//! @brief One step of the elimination of a square of rows of `max_rank`; see `factor_archetype::eliminate`.
inline void eliminate_row(instruction_set set, double* square, int rank, int j)
{
  TERSUM_DISPATCH(set, true, eliminate_row(square, rank, j));
}

#undef TERSUM_DISPATCH
#undef TERSUM_SIMD_SOURCE

}  // namespace tersum::inline v0::detail
