// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An exchange with the wires of agreed scalars, of what bypasses and of codes: nvcc compiles it with clang for the host.

#include <tersum/tersum.cuh>

#include <cstddef>
#include <span>

tersum::status exchange(cudaStream_t stream,
                        std::span<float> gradient,
                        std::span<std::byte> state,
                        std::span<std::byte> workspace)
{
  auto const plan =
    tersum::presets::rotated_sat4.plan({.coordinates = gradient.size()}, {.size = 2, .rank = 0});
  return all_reduce_mean(
    tersum::cuda_executor{stream}, plan, gradient, state, workspace, [](auto const&) {});
}
