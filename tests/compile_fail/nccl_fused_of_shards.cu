// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Without NCCL's device interface there is nothing to refuse.
// expected: tersum: nccl_fused takes all_reduce_mean only: give reduce_scatter_mean and

#if __has_include(<nccl_device.h>)

#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/presets.hpp>

#include <functional>
#include <span>
#include <tersum_nccl_device/nccl_fused.cuh>

tersum::status scatter(tersum::nccl_fused const& fused,
                       tersum::cuda_executor const& exec,
                       std::span<float> gradient,
                       std::span<float> shard,
                       std::span<std::byte> state)
{
  auto const plan =
    tersum::presets::sharded_4.plan({.coordinates = gradient.size()}, {.size = 4, .rank = 0});
  return reduce_scatter_mean(
    exec, plan, gradient, shard, state, fused.workspace(), std::cref(fused));
}

#else
#error                                                                                             \
  "tersum: nccl_fused takes all_reduce_mean only: give reduce_scatter_mean and others another collective"
#endif
