// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranks that are streams of a GPU.

#include <cstdlib>
#include <interop/simulated/on_all_ranks.hpp>
#include <nccl_device/on_streams.hpp>

namespace tersum::tests {

namespace {

// Before anything asks for the device. Kernels that wait for those of another stream need all of them loaded, as loading may wait for the
// device, and a queue of the device for each stream.
[[maybe_unused]] bool const set = setenv("CUDA_MODULE_LOADING", "EAGER", 1) == 0 &&
                                  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1) == 0;

}  // namespace

int on_streams(int ranks, std::function<int(nccl_rank&)> const& body)
{
  return on_all_ranks(ranks, true, body);
}

}  // namespace tersum::tests
