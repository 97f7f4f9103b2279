// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Parts of `cuda_context`: the barrier of a grid, and rows that leave shared memory in one copy, from sm_90 on.

#pragma once

#include <tersum/detail/std.hpp>

namespace tersum::inline v0::detail {

//! @brief What the grid of cooperative groups does, for blocks of one dimension: its header takes nvcc two seconds a file.
//!
//! The driver gives each cooperative launch, also in a graph, the word that blocks count in, and leaves the address of its workspace in two
//! registers, as cooperative_groups/details/driver_abi.h says. Of any other launch the address is zero: it ends here with a fault. A
//! barrier flips the highest bit of the word and leaves the others as they were, so that nothing has to be set back.
struct cuda_grid {
  __device__ __forceinline__ std::uint32_t arrive_grid() const
  {
    std::uint32_t before = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
      std::uint32_t const own = blockIdx.x == 0 ? 0x80000001u - gridDim.x : 1u;
      asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                   : "=r"(before)
                   : "l"(counted()), "r"(own)
                   : "memory");
    }
    return before;
  }

  __device__ __forceinline__ void wait_grid(std::uint32_t arrival) const
  {
    if (threadIdx.x == 0) {
      std::uint32_t now;
      do {
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(counted()) : "memory");
      } while (((now ^ arrival) & 0x80000000u) == 0);
    }
    __syncthreads();
  }

 private:
  [[nodiscard]] static __device__ __forceinline__ std::uint64_t counted()
  {
    std::uint32_t high, low;
    asm("mov.u32 %0, %%envreg1; mov.u32 %1, %%envreg2;" : "=r"(high), "=r"(low));
    std::uint64_t const workspace = std::uint64_t{high} << 32 | low;
    if (workspace == 0) { __trap(); }
    return workspace + 4;
  }
};

//! @brief Bulk copies. Whoever has stored some of a row calls `show_row`. Behind a barrier one thread calls `copy_row` and then, before the
//! row is stored again or the block ends, `end_rows`. Both places are aligned to 16 bytes, of which a row has whole ones. Memory has it when
//! the kernel has ended.
struct cuda_rows {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  static __device__ __forceinline__ void show_row()
  {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }

  static __device__ __forceinline__ void copy_row(void* to, void const* row, std::uint32_t bytes)
  {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 " cp.async.bulk.commit_group;"
                 :
                 : "l"(__cvta_generic_to_global(to)),
                   "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row))),
                   "r"(bytes)
                 : "memory");
  }

  static __device__ __forceinline__ void end_rows()
  {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }

  //! True for one thread of the warp, all of which call it. The compiler knows that it is one, so that its copy takes no loop over lanes.
  static __device__ __forceinline__ bool is_elected()
  {
    std::uint32_t elected;
    asm volatile("{ .reg .pred elected; elect.sync _|elected, -1; selp.u32 %0, 1, 0, elected; }"
                 : "=r"(elected));
    return elected != 0;
  }
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000
  //! @name `ldmatrix` and `stmatrix`: see `has_matrices`. Before sm_90 there is only the first, and from sm_100 on kernels take more registers.
  //! @{
  static __device__ __forceinline__ void load_matrix(float const* row, float* v)
  {
    std::uint32_t w[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
                 : "memory");
    for (int j = 0; j < 4; ++j) { v[j] = __uint_as_float(w[j]); }
  }
  static __device__ __forceinline__ void store_matrix(float* row, float const* v)
  {
    asm volatile("{ .reg .b32 w<4>; mov.b32 w0, %1; mov.b32 w1, %2; mov.b32 w2, %3; mov.b32 w3, %4;"
                 " stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {w0, w1, w2, w3}; }"
                 :
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row))),
                   "f"(v[0]),
                   "f"(v[1]),
                   "f"(v[2]),
                   "f"(v[3])
                 : "memory");
  }
  //! @}
#endif
};

}  // namespace tersum::inline v0::detail
