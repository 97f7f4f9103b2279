// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The attribute macros. They change attributes only: never a function body, never a layout.

#pragma once

#if __cplusplus < 202002L
#error "tersum: compile as C++20: -std=c++20, which nvcc needs as well"
#endif

#if defined(__FAST_MATH__)
#error "tersum: ranks must agree to the last bit, and NaNs be seen: compile without -ffast-math"
#endif

// Its parts, as far as compilers show them: g++ all of these, clang the first one. `initialize` looks for the others.
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "tersum: a NaN has to be told from a number: compile without -ffinite-math-only"
#endif
#if defined(__NO_SIGNED_ZEROS__)
#error "tersum: ranks must agree to the last bit: compile without -fno-signed-zeros"
#endif
#if defined(__ASSOCIATIVE_MATH__)
#error "tersum: sums are taken in the order that is written: compile without -fassociative-math"
#endif
#if defined(__RECIPROCAL_MATH__)
#error "tersum: a quotient is rounded once: compile without -freciprocal-math"
#endif
#if defined(__FLT_EVAL_METHOD__) &&                                                                \
  (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error                                                                                             \
  "tersum: floats are rounded to float after each operation: compile for SSE2, without -mfpmath=387"
#endif
#if defined(__GCC_IEC_559) && __GCC_IEC_559 == 0
#error                                                                                             \
  "tersum: numbers must be those of IEEE 754: compile without -fsingle-precision-constant and its like"
#endif

//! Before a function for host and device.
#if defined(__CUDACC__)
#define TERSUM_HOST_DEVICE __host__ __device__
#else
#define TERSUM_HOST_DEVICE
#endif

//! Before a function of the host that must be inlined. Without optimization it is an ordinary function: inlining would
//! repeat code for nothing, and take a fifth of the time to compile, under sanitizers more than half of it.
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define TERSUM_HOST_INLINE inline __attribute__((always_inline))
#else
#define TERSUM_HOST_INLINE inline
#endif

//! Before a function for host and device that must be inlined.
#if defined(__CUDACC__)
#define TERSUM_INLINE __host__ __device__ __forceinline__
#else
#define TERSUM_INLINE TERSUM_HOST_INLINE
#endif

//! Before a function for host and device that calls a function object of the caller, which may be for one of them only.
#if defined(__CUDACC__)
#define TERSUM_EXEC_CHECK_DISABLE _Pragma("nv_exec_check_disable")
#else
#define TERSUM_EXEC_CHECK_DISABLE
#endif

//! What a kernel body is: device code under nvcc, a plain function for the host context of the tests.
#if defined(__CUDACC__)
#define TERSUM_BODY __device__ __forceinline__
#else
#define TERSUM_BODY inline
#endif

//! Unrolls the loop that follows, which has a constant number of at most 64 rounds. nvcc's host pass has no such pragma.
#if defined(__CUDA_ARCH__)
#define TERSUM_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define TERSUM_UNROLL
#elif defined(__clang__)
#define TERSUM_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define TERSUM_UNROLL _Pragma("GCC unroll 64")
#else
#define TERSUM_UNROLL
#endif

//! Leaves the loop that follows a loop on a device.
#if defined(__CUDA_ARCH__)
#define TERSUM_NO_UNROLL _Pragma("unroll 1")
#else
#define TERSUM_NO_UNROLL
#endif

//! Unrolls the loop that follows twice, and no further, on a device.
#if defined(__CUDA_ARCH__)
#define TERSUM_UNROLL_TWICE _Pragma("unroll 2")
#else
#define TERSUM_UNROLL_TWICE
#endif
