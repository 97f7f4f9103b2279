// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/kernels.md, on the emulator's context.

#include <tersum/block/block_load.hpp>
#include <tersum/block/block_norm.hpp>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/range/chunk_step.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/tersum.hpp>

#include <cstdint>
#include <support/emulator/host_context.hpp>

namespace tersum {

struct cuda_context : emulator::host_context {
  cuda_context();
};

}  // namespace tersum

#define __global__
#define __shared__ static
#define __launch_bounds__(threads)

// code 1

void launch(float step,
            float bound,
            int ranks,
            std::uint32_t rank,
            std::uint64_t training_step,
            std::uint64_t seed)
{
  // code 2
  static_assert(sizeof(rotation::storage) == 18944 && chunk::block_threads == 128);
  compress(nullptr, 0, scale, signs, draws, nullptr);
  apply(nullptr, 0, scale, ranks, signs, nullptr);
}

// code 3
