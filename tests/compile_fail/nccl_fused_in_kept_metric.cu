// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Without NCCL's device interface there is nothing to refuse.
// expected: tersum: nccl_fused takes codec and two_shot_codec under fixed_chunks, two_shot_codec

#if __has_include(<nccl_device.h>)

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/presets.hpp>

#include <functional>
#include <span>
#include <tersum_nccl_device/nccl_fused.cuh>

tersum::status reduce(tersum::nccl_fused const& fused,
                      tersum::cuda_executor const& exec,
                      std::span<float> gradient,
                      std::span<std::byte> state)
{
  auto const plan =
    tersum::presets::metric_2.plan({.coordinates = gradient.size()}, {.size = 4, .rank = 0});
  return all_reduce_mean(exec, plan, gradient, state, fused.workspace(), std::cref(fused));
}

#else
#error                                                                                             \
  "tersum: nccl_fused takes codec and two_shot_codec under fixed_chunks, two_shot_codec without feedback"
#endif
