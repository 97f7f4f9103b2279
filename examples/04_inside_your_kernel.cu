// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two kernels of your own compress: one unscales, clips and encodes a gradient, the other adds the payloads of all ranks, decodes their
//! sum and makes the step of SGD.

#include "kernels/inside_your_kernel.hpp"
#include "support/error_of.hpp"

#include <tersum/block/chunk_step.hpp>
#include <tersum/block/cuda_context.cuh>
#include <tersum/rotate/partial_hadamard.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

using namespace inside_your_kernel;

template <class... Args>
__global__ void __launch_bounds__(chunk::block_threads) compress_kernel(Args... args)
{
  __shared__ rotation::storage shared;
  compress(tersum::cuda_context{}, shared, args...);
}

template <class... Args>
__global__ void __launch_bounds__(chunk::block_threads) update_kernel(Args... args)
{
  __shared__ rotation::storage shared;
  update(tersum::cuda_context{}, shared, args...);
}

int main()
{
  int devices = 0;
  if (auto const error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
    return std::printf("skipped: %s\n", cudaGetErrorString(error)), 77;
  }
  constexpr std::uint64_t count = (1 << 20) + 100, words = chunk::words<codes::words>(count);
  constexpr int ranks     = 4;
  tersum::half* gradients = nullptr;
  std::uint32_t* payloads = nullptr;
  std::uint32_t* overflow = nullptr;
  float* parameters       = nullptr;
  cudaStream_t stream;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
      cudaMallocManaged(&gradients, ranks * count * sizeof(tersum::half)) != cudaSuccess ||
      cudaMallocManaged(&payloads, ranks * words * sizeof(std::uint32_t)) != cudaSuccess ||
      cudaMallocManaged(&overflow, sizeof(std::uint32_t)) != cudaSuccess ||
      cudaMallocManaged(&parameters, count * sizeof(float)) != cudaSuccess) {
    return std::fprintf(stderr, "no memory or stream\n"), 1;
  }
  constexpr float loss_scale = 1024, rms = 0.01f, clip = 0.03f, rate = 0.125f;
  std::vector<double> mean(count);  // of unscaled, clipped gradients
  std::mt19937 random{1};
  std::normal_distribution<float> normal{0, rms * loss_scale};
  for (std::uint64_t i = 0; i < ranks * count; ++i) {
    gradients[i]      = tersum::to_half(normal(random));
    float const value = tersum::to_float(gradients[i]) / loss_scale;
    mean[i % count] += static_cast<double>(std::clamp(value, -clip, clip)) / ranks;
  }
  std::fill_n(parameters, count, 0.0f);
  *overflow = 0;

  // One step for all chunks, from a root mean square that the ranks know, of the last mean for instance. The sum of
  // independent ranks is sqrt(ranks) times as large. No rotated coordinate exceeds the norm of its chunk.
  float const range = reducer::best_clip(ranks) * std::sqrt(float{ranks}) * rms;
  float const bound = clip * std::sqrt(float{chunk::size});
  using rotator     = tersum::partial_hadamard<chunk::size>;
  step_settings now{.unscale = 1 / loss_scale,
                    .clip    = clip,
                    .rate    = rate,
                    .scale   = tersum::make_chunk_step<rotator, quantizer>(
                      range / quantizer::max_level, bound, ranks),
                    .draws = {.seed = 42, .step = 0},
                    .signs = tersum::sign_key(0, 42)};
  auto const blocks = static_cast<unsigned>(chunk::blocks(count));
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {  // one device plays all ranks
    now.draws.rank = rank;
    compress_kernel<<<blocks, chunk::block_threads, 0, stream>>>(
      now, gradients + rank * count, count, overflow, payloads + rank * words);
  }
  update_kernel<<<blocks, chunk::block_threads, 0, stream>>>(
    now, payloads, ranks, count, overflow, parameters);
  if (auto const error = cudaStreamSynchronize(stream); error != cudaSuccess) {
    return std::fprintf(stderr, "%s\n", cudaGetErrorString(error)), 1;
  }
  std::vector<float> estimate(count);
  for (std::uint64_t i = 0; i < count; ++i) { estimate[i] = -parameters[i] / rate; }
  std::printf("error of the step: %.4f\n", support::error_of(estimate, mean));
}
