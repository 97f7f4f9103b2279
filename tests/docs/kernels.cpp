// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/kernels.md, whose kernels run on the emulator's context: three ranks measure, compress and apply.
//! Launches and the memory of a device are not checked here: examples/04_inside_your_kernel.cu has those.

#include "support/emulator.hpp"
#include "support/emulator/block.cpp"

#include <tersum/block/block_norm.hpp>
#include <tersum/block/block_values.hpp>
#include <tersum/block/chunk_step.hpp>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/tersum.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace tersum {

// The thread of the emulator that calls the kernel.
inline emulator::host_context const* calling = nullptr;

struct cuda_context : emulator::host_context {
  cuda_context() : emulator::host_context(*calling) {}
};

}  // namespace tersum

#define __global__
#define __shared__ static
#define __launch_bounds__(threads)

// code 1

__global__ void measure(float const* gradient, std::uint64_t count, float* norms)
{
  tersum::cuda_context const ctx;
  chunk const mine = chunk::of(ctx, count);
  float v[32];
  array::load(ctx, mine, gradient, v);
  float const norm = tersum::block_norm<1024>::squared(ctx, mine, nullptr, v);
  if (mine.exists() && mine.thread == 0) { norms[mine.chunk] = norm; }
}

template <class... Parameters, class... Arguments>
void launch(std::uint64_t count, void (*kernel)(Parameters...), Arguments... arguments)
{
  tersum::emulator::launch_shape const shape{.blocks =
                                               static_cast<std::uint32_t>(chunk::blocks(count)),
                                             .threads      = chunk::block_threads,
                                             .shared_bytes = 0};
  tersum::emulator::launch(shape, {}, [&](tersum::emulator::host_context& ctx) {
    tersum::calling = &ctx;
    kernel(arguments...);
  });
}

int main()
{
  static_assert(sizeof(rotation::storage) == 18944 && chunk::block_threads == 128);
  constexpr int ranks                   = 3;
  constexpr std::uint64_t training_step = 5, seed = 42;
  std::uint64_t const count  = 5 * 1024 + 77;
  std::uint64_t const chunks = chunk_count(tersum::fixed_chunks<1024>{}, count);
  std::vector<std::vector<float>> gradients;
  std::vector<float> wanted(count), summed(chunks), norms(chunks);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      float const at = static_cast<float>(i);
      values[i] = std::sin(.37f * at) + .2f * std::cos(.61f * static_cast<float>(rank + 1) * at);
      wanted[i] += values[i] / ranks;
    }
    launch(count, measure, values.data(), count, norms.data());
    for (std::size_t i = 0; i < chunks; ++i) { summed[i] += norms[i]; }
    gradients.push_back(values);
  }
  // One step for all chunks, as the page derives it: gradients that are alike, in 4 bits.
  float const reach = std::sqrt(summed[0] / (ranks * 1024.0f));
  float const step  = reach * 2 * ranks / 7;
  float const bound = std::sqrt(summed[0]);

  std::vector<std::uint32_t> sum(chunk::words<codes::words>(count));
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    // code 2

    std::vector<std::uint32_t> payload(sum.size());
    launch(count, compress, gradients[rank].data(), count, scale, signs, draws, payload.data());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = rank == 0 ? payload[i] : tersum::saturating_add<4>{}(sum[i], payload[i]);
    }
  }
  std::uint32_t const rank = 0;
  std::vector<float> mean(count);
  {
    // code 2

    launch(count, apply, sum.data(), count, scale, ranks, signs, mean.data());
  }
  double error = 0, square = 0;
  for (std::size_t i = 0; i < count; ++i) {
    error += std::pow(static_cast<double>(mean[i]) - static_cast<double>(wanted[i]), 2);
    square += std::pow(static_cast<double>(wanted[i]), 2);
  }
  if (!(error / square < .15)) {
    std::printf("the mean of three ranks is off by %g\n", error / square);
  }
  return error / square < .15 ? 0 : 1;
}
