// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rows that leave shared memory in one copy: a part of `cuda_context`, from sm_90 on.

#pragma once

#include <tersum/detail/std.hpp>

namespace tersum::inline v0::detail {

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
};

}  // namespace tersum::inline v0::detail
