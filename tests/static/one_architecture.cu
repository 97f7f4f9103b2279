// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a program may have two objects of, for unlike architectures: architectures.py.

#include <tersum/tersum.cuh>

#include <cstddef>
#include <span>

tersum::status begin(cudaStream_t stream, std::span<std::byte> state)
{
  auto const plan = tersum::presets::fp32.plan({.coordinates = 5}, {});
  return initialize(tersum::cuda_executor{stream}, plan, state, 1);
}
