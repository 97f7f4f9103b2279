// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernels that are put together from block-scope pieces, whose machine code budgets.json limits: those of
//! examples/04_inside_your_kernel.cu and of examples/kernels/, and those of single pieces, beside what is written by hand.

#include "../../bench/plain_kernels.cuh"
#include "../../examples/kernels/bias_in_4_bits.hpp"
#include "../../examples/kernels/cast_to_nvfp4.hpp"
#include "../../examples/kernels/inside_your_kernel.hpp"
#include "../../examples/kernels/kv_page.hpp"
#include "../../examples/kernels/sum_over_peers.hpp"

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

__global__ void __launch_bounds__(chunk::block_threads)
  bias_in_4_bits_kernel(tersum::half const* values,
                        float const* bias,
                        std::uint64_t count,
                        std::uint64_t width,
                        tersum::dither_key draws,
                        std::uint64_t signs,
                        std::uint32_t* payload,
                        float* steps)
{
  __shared__ bias_in_4_bits::rotation::storage shared;
  bias_in_4_bits::encode(
    tersum::cuda_context{}, shared, values, bias, count, width, draws, signs, payload, steps);
}

// Ten blocks on a multiprocessor: there 48 registers cost no instruction.
__global__ void __launch_bounds__(kv_page::key::block_threads, 10)
  write_keys_kernel(tersum::half const* keys, kv_page::page to)
{
  __shared__ kv_page::rotation::storage shared;
  kv_page::write(tersum::cuda_context{}, shared, keys, to);
}

__global__ void __launch_bounds__(kv_page::key::block_threads)
  multiply_keys_kernel(float const* query, kv_page::page by, float* products)
{
  __shared__ kv_page::rotation::storage shared;
  kv_page::multiply(tersum::cuda_context{}, shared, query, by, products);
}

__global__ void cast_to_nvfp4_kernel(float const* values,
                                     std::uint64_t blocks,
                                     float unit,
                                     std::uint64_t signs,
                                     tersum::dither_key draws,
                                     std::uint32_t* codes,
                                     std::uint8_t* scales)
{
  cast_to_nvfp4::cast(tersum::cuda_context{}, values, blocks, unit, signs, draws, codes, scales);
}

__global__ void sum_over_peers_kernel(sum_over_peers::peers all, std::uint64_t size)
{
  sum_over_peers::all_reduce(tersum::cuda_context{}, all, size);
}

__global__ void __launch_bounds__(128) block_chunk_kernel(std::uint64_t count, chunk* to)
{
  to[std::uint64_t{blockIdx.x} * 128 + threadIdx.x] = chunk::of(tersum::cuda_context{}, count);
}
