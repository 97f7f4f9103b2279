// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The barrier of all blocks of a cooperative launch: a part of `cuda_context`.

#pragma once

#include <cooperative_groups.h>

#include <cstdint>
#include <utility>

namespace tersum::inline v0::detail {

//! @brief The driver gives each cooperative launch the word that blocks count in, also in a graph. Any other launch ends here with
//! a fault.
struct cuda_grid {
  __device__ __forceinline__ std::uint32_t arrive_grid() const
  {
    return cooperative_groups::this_grid().barrier_arrive();
  }

  __device__ __forceinline__ void wait_grid(std::uint32_t arrival) const
  {
    cooperative_groups::this_grid().barrier_wait(std::move(arrival));
  }
};

}  // namespace tersum::inline v0::detail
