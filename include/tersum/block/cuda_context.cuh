// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The block context of CUDA: what kernel bodies are written against, as intrinsics.

#pragma once

#if !defined(__CUDACC__)
#error "tersum/block/cuda_context.cuh needs nvcc; include <tersum/tersum.hpp> from other compilers"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "tersum: kernels need sm_80 or later"
#endif

#include <tersum/block/block_context.hpp>
#include <tersum/block/detail/cuda_floats.cuh>
#include <tersum/block/detail/cuda_grid.cuh>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

//! @brief This thread of a CUDA kernel; every member is one or two instructions. tests/support/emulator.hpp is its host twin.
struct cuda_context : detail::cuda_floats, detail::cuda_grid, detail::cuda_rows {
  __device__ __forceinline__ unsigned thread_rank() const { return threadIdx.x; }
  __device__ __forceinline__ unsigned block_threads() const { return blockDim.x; }
  __device__ __forceinline__ std::uint32_t block_rank() const { return blockIdx.x; }
  __device__ __forceinline__ std::uint32_t grid_blocks() const { return gridDim.x; }
  __device__ __forceinline__ void sync_block() const { __syncthreads(); }
  __device__ __forceinline__ void sync_warp() const { __syncwarp(); }

  template <class T>
  __device__ __forceinline__ T shuffle_xor(T value, unsigned mask) const
  {
    return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
  }

  //! The value of lane `from` modulo 32.
  template <class T>
  __device__ __forceinline__ T shuffle(T value, std::uint32_t from) const
  {
    return __shfl_sync(0xffffffffu, value, static_cast<int>(from));
  }

  __device__ __forceinline__ std::uint32_t warp_sum(std::uint32_t value) const
  {
    return __reduce_add_sync(0xffffffffu, value);
  }

  __device__ __forceinline__ std::uint32_t warp_max(std::uint32_t value) const
  {
    return __reduce_max_sync(0xffffffffu, value);
  }

  //! The sum of the values of the lanes up to this one.
  __device__ __forceinline__ std::uint32_t warp_scan(std::uint32_t value) const
  {
    TERSUM_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
      // The shuffle says whether there is such a lane, which C++ does not tell.
      asm volatile("{ .reg .u32 other; .reg .pred inside;"
                   " shfl.sync.up.b32 other|inside, %0, %1, 0, -1;"
                   " @inside add.u32 %0, %0, other; }"
                   : "+r"(value)
                   : "r"(distance));
    }
    return value;
  }

  //! This thread's number in its warp, read anew: a kernel that kept it from one sum to the next would need the register.
  static __device__ __forceinline__ unsigned lane()
  {
    unsigned number;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(number));
    return number;
  }

  //! c += a b on tensor cores, of tiles of halves, 16 x 16, and sums, 16 x 8, that the warp holds as PTX's
  //! `mma.m16n8k16` wants them: two halves a word.
  __device__ __forceinline__ void multiply_tiles(float (&c)[4],
                                                 std::uint32_t const (&a)[4],
                                                 std::uint32_t b0,
                                                 std::uint32_t b1) const
  {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }

  //! d = a b on tensor cores, of tiles of halves laid out as for `multiply_tiles`, with sums in half. Lane l gets columns
  //! 2 (l % 4) and 2 (l % 4) + 1 of row l/4 in one word, and of row l/4 + 8 in the other.
  __device__ __forceinline__ void multiply_tiles_to_half(std::uint32_t (&d)[2],
                                                         std::uint32_t const (&a)[4],
                                                         std::uint32_t b0,
                                                         std::uint32_t b1) const
  {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
                 "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%8};"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
  }

  __device__ __forceinline__ void* shared() const
  {
    extern __shared__ word4 tersum_shared[];
    return tersum_shared;
  }

  //! One access. Structures of 16 bytes go through a vector register, whatever their members.
  template <class T>
  __device__ __forceinline__ T load(T const* p) const
  {
    if constexpr (sizeof(T) == 16) {
      uint4 const four = *reinterpret_cast<uint4 const*>(p);
      return __builtin_bit_cast(T, four);
    } else {
      return *p;
    }
  }

  template <class T>
  __device__ __forceinline__ void store(T* p, T value) const
  {
    if constexpr (sizeof(T) == 16) {
      *reinterpret_cast<uint4*>(p) = __builtin_bit_cast(uint4, value);
    } else {
      *p = value;
    }
  }

  //! 16 bytes of global memory in one access, also where the compiler does not see that `store` can be one.
  __device__ __forceinline__ void store_global(word4* p, word4 const& value) const
  {
    asm volatile(
      "st.global.v4.u32 [%0], {%1, %2, %3, %4};"
      :
      : "l"(__cvta_generic_to_global(p)), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
      : "memory");
  }

  __device__ __forceinline__ void atomic_add(std::uint32_t* to, std::uint32_t value) const
  {
    atomicAdd(to, value);
  }
  __device__ __forceinline__ void atomic_max(std::uint32_t* to, std::uint32_t value) const
  {
    atomicMax(to, value);
  }
  __device__ __forceinline__ bool is_last(std::uint32_t* counter, std::uint32_t calls) const
  {
    __threadfence();
    bool const last = atomicInc(counter, calls - 1) == calls - 1;
    __threadfence();
    return last;
  }

  static __device__ __forceinline__ std::uint32_t select_bytes(std::uint32_t a,
                                                               std::uint32_t b,
                                                               std::uint32_t selector)
  {
    return __byte_perm(a, b, selector);
  }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  static constexpr bool clamps_at_once = false;  //!< `add_clamp` is three instructions here.
#endif

  static __device__ __forceinline__ std::int32_t add_clamp(std::int32_t a,
                                                           std::int32_t b,
                                                           std::int32_t high)
  {
    return __viaddmin_s32_relu(a, b, high);
  }

  //! For `philox4x32`: one wide multiplication. Of the same in C++ nvcc makes two or three instructions.
  struct product {
    static __device__ __forceinline__ std::uint64_t of(std::uint32_t a, std::uint32_t b)
    {
      std::uint64_t result;
      asm("mul.wide.u32 %0, %1, %2;" : "=l"(result) : "r"(a), "r"(b));
      return result;
    }
  };

  static __device__ __forceinline__ std::uint32_t population(std::uint32_t a)
  {
    return static_cast<std::uint32_t>(__popc(a));
  }

  //! sum + the scalar product of the unsigned bytes of a and b.
  static __device__ __forceinline__ std::uint32_t dot_bytes(std::uint32_t a,
                                                            std::uint32_t b,
                                                            std::uint32_t sum)
  {
    return __dp4a(a, b, sum);
  }
};

static_assert(tensor_core_context<cuda_context> && grid_context<cuda_context>);

}  // namespace tersum::inline v0
