// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Calls on arrays in device memory.

#pragma once

#include "placed_array.hpp"
#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>

#include <cstddef>
#include <cstdlib>

namespace tersum::tests {

using device_placement = placement<cuda_executor, device_buffer>;

//! On a stream; tools that look at every access get short arrays.
[[nodiscard]] inline device_placement place_on(stream const& on, std::size_t most)
{
  return {cuda_executor{on.get()}, std::getenv("TERSUM_SMALL") == nullptr ? most : 4000};
}

}  // namespace tersum::tests
