// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernels that are put together from block-scope pieces, whose machine code budgets.json limits: those of
//! examples/04_inside_your_kernel.cu.

#include "../../examples/04_inside_your_kernel.hpp"

#include <tersum/block/cuda_context.cuh>

using namespace inside_your_kernel;

__global__ void __launch_bounds__(chunk::block_threads)
  compress_kernel(step_settings now,
                  tersum::half const* gradient,
                  std::uint64_t count,
                  std::uint32_t* overflow,
                  std::uint32_t* payload)
{
  __shared__ rotation::storage shared;
  compress(tersum::cuda_context{}, shared, now, gradient, count, overflow, payload);
}

__global__ void __launch_bounds__(chunk::block_threads) update_kernel(step_settings now,
                                                                      std::uint32_t const* payloads,
                                                                      int ranks,
                                                                      std::uint64_t count,
                                                                      std::uint32_t const* overflow,
                                                                      float* parameters)
{
  __shared__ rotation::storage shared;
  update(tersum::cuda_context{}, shared, now, payloads, ranks, count, overflow, parameters);
}
