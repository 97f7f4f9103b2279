// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A metric that is kept, and shards. Without NCCL's device interface there is nothing to refuse.

#if __has_include(<nccl_device.h>)

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/presets.hpp>

#include <functional>
#include <span>
#include <tersum_nccl_device/nccl_fused.cuh>

using namespace tersum;

status exchange(nccl_fused const& fused,
                cuda_executor const& exec,
                std::span<float> x,
                std::span<float> shard,
                std::span<std::byte> state)
{
  world const of{.size = 4, .rank = 0};
  // expected: tersum: nccl_fused takes in_wire and two_shot under fixed_chunks, two_shot
  auto const in_metric = presets::metric_2.plan({.coordinates = x.size()}, of);
  (void)all_reduce_mean(exec, in_metric, x, state, fused.workspace(), std::cref(fused));
  // expected: tersum: nccl_fused takes all_reduce_mean only: give reduce_scatter_mean and
  auto const of_shards = presets::sharded_4.plan({.coordinates = x.size()}, of);
  return reduce_scatter_mean(exec, of_shards, x, shard, state, fused.workspace(), std::cref(fused));
}

#else
#error "tersum: nccl_fused takes in_wire and two_shot under fixed_chunks, two_shot"
#error "tersum: nccl_fused takes all_reduce_mean only: give reduce_scatter_mean and others another"
#endif
