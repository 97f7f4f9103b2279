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

#if defined(__CUDACC__)
#define TERSUM_HOST_DEVICE __host__ __device__
#else
#define TERSUM_HOST_DEVICE
#endif

//! Before a function of the host that is inlined, unless nothing is optimized: code would be repeated for nothing, which
//! takes a fifth of the time to compile it, and more than half under sanitizers.
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define TERSUM_HOST_INLINE inline __attribute__((always_inline))
#else
#define TERSUM_HOST_INLINE inline
#endif

#if defined(__CUDACC__)
#define TERSUM_INLINE __host__ __device__ __forceinline__
#else
#define TERSUM_INLINE TERSUM_HOST_INLINE
#endif

//! Before a function for host and device that calls what it is given, which may be for one of them only.
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

//! Unrolls the loop that follows, whose trip count is a constant of at most 64. nvcc's host pass knows no such pragma.
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
