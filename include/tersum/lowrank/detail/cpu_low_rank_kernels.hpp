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

namespace cpu_baseline {
#define TERSUM_SIMD_WIDTH 4
#define TERSUM_SIMD       [[maybe_unused]] TERSUM_HOST_INLINE
#define TERSUM_TARGET     [[maybe_unused]] inline
#include <tersum/lowrank/detail/cpu_low_rank_kernels.inl>
#undef TERSUM_SIMD_WIDTH
#undef TERSUM_SIMD
#undef TERSUM_TARGET
}  // namespace cpu_baseline

#if defined(__x86_64__)
namespace cpu_avx2 {
#define TERSUM_SIMD_WIDTH 8
#define TERSUM_SIMD       [[maybe_unused]] TERSUM_HOST_INLINE __attribute__((target("avx2,fma,f16c")))
#define TERSUM_TARGET     [[maybe_unused]] inline __attribute__((target("avx2,fma,f16c")))
#include <tersum/lowrank/detail/cpu_low_rank_kernels.inl>
#undef TERSUM_SIMD_WIDTH
#undef TERSUM_SIMD
#undef TERSUM_TARGET
}  // namespace cpu_avx2

namespace cpu_avx512 {
#define TERSUM_SIMD_WIDTH 16
#define TERSUM_SIMD                                                                                \
  [[maybe_unused]] TERSUM_HOST_INLINE                                                              \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define TERSUM_TARGET                                                                              \
  [[maybe_unused]] inline                                                                          \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#include <tersum/lowrank/detail/cpu_low_rank_kernels.inl>
#undef TERSUM_SIMD_WIDTH
#undef TERSUM_SIMD
#undef TERSUM_TARGET
}  // namespace cpu_avx512

#define TERSUM_DISPATCH(set, call)                                                                 \
  do {                                                                                             \
    if ((set) == instruction_set::avx512) { return cpu_avx512::call; }                             \
    if ((set) == instruction_set::avx2) { return cpu_avx2::call; }                                 \
    return cpu_baseline::call;                                                                     \
  } while (false)
#else
#define TERSUM_DISPATCH(set, call)                                                                 \
  do {                                                                                             \
    static_cast<void>(set);                                                                        \
    return cpu_baseline::call;                                                                     \
  } while (false)
#endif

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
  TERSUM_DISPATCH(set, multiply_block(factors, stride, step, rows, terms, tile, to));
}

//! @brief gram[k][l] += sum over 64 terms t of tile[t][k] * tile[t][l], l not below k; rows of `max_rank`.
inline void gram_block(instruction_set set, double const* tile, int rank, double* gram)
{
  TERSUM_DISPATCH(set, gram_block(tile, rank, gram));
}

[[nodiscard]] inline double dot_product(instruction_set set,
                                        float const* a,
                                        float const* b,
                                        std::uint64_t count)
{
  TERSUM_DISPATCH(set, dot_product(a, b, count));
}

inline void subtract_column(
  instruction_set set, float* to, double share, float const* from, std::uint64_t count)
{
  TERSUM_DISPATCH(set, subtract_column(to, share, from, count));
}

//! @brief One step of the elimination of a square of rows of `max_rank`; see `factor_archetype::eliminate`.
inline void eliminate_row(instruction_set set, double* square, int rank, int j)
{
  TERSUM_DISPATCH(set, eliminate_row(square, rank, j));
}

#undef TERSUM_DISPATCH

}  // namespace tersum::inline v0::detail
