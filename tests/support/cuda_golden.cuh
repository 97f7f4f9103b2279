// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A device, or the simulated one, is held to the golden files.

#pragma once

#include "compare_executors.cuh"
#include "golden_exchange.hpp"

#include <tersum/tersum.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

namespace tersum::tests {

//! @brief Memory of a device, as `host_memory` is the host's.
struct device_memory {
  using buffer = device_buffer;

  template <class Visit>
  static void read(std::span<std::byte const> bytes, Visit const& visit)
  {
    byte_string copied(bytes.size());
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaMemcpy(copied.data(), bytes.data(), bytes.size(), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    visit(std::span<std::byte const>{copied});
  }
};

//! All ranks share a stream, so that what one of them does for all comes after what each has enqueued.
template <class Codec>
void check_on_device(std::string const& name, Codec const& codec)
{
  stream const on;
  check_golden<float, device_memory>(cuda_executor{on.get()}, name, codec);
}

}  // namespace tersum::tests

//! Holds what nvcc makes of the kernels of the preset of that name.
#define TERSUM_HOLD_ON_DEVICE(name) tersum::tests::check_on_device(#name, tersum::presets::name)
