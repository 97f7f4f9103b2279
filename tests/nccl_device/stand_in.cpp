// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The functions of NCCL that interop/nccl_symmetric.cuh and nccl_fused.cuh use, for ranks of one simulated device: windows are mappings of
//! their memory, and the device's part of NCCL is NCCL's own, which the kernels include.

#include "interop/simulated/communicator.hpp"
#include "support/simulator/memory.hpp"

#include <cuda_runtime_api.h>
#include <nccl.h>

#if NCCL_VERSION_CODE >= 22800

#include <nccl_device.h>

#include <algorithm>
#include <cstring>
#include <new>

using namespace tersum::simulator;

namespace {

// Memory of all ranks once more, one every 4 GiB, as a rank sees it.
std::uint64_t map_all(communicator const& on, void* mine)
{
  auto const all = on->world->share(on->rank, mine);
  return all.empty() ? 0 : global_memory::get().map(all);
}

char* pointer(std::uint64_t address) { return reinterpret_cast<char*>(address); }

}  // namespace

extern "C" {

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes)
{
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* memory)
{
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommWindowRegister(
  ncclComm_t comm, void* memory, std::size_t bytes, ncclWindow_t* window, int flags)
{
  auto const on         = find(comm);
  auto const* const has = global_memory::get().find(reinterpret_cast<std::uint64_t>(memory));
  if (on == nullptr || has == nullptr || has->size() < bytes || flags != NCCL_WIN_COLL_SYMMETRIC) {
    return ncclInvalidArgument;
  }
  std::uint64_t const first = map_all(on, memory);
  if (first == 0) { return ncclRemoteError; }
  auto* const made =
    new (global_memory::get().allocate(sizeof(ncclWindow_vidmem), memory_kind::managed))
      ncclWindow_vidmem{};
  made->lsaFlatBase = pointer(first);
  made->lsaRank = made->worldRank = on->rank;
  made->stride4G                  = 1;
  *window                         = made;
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
  auto const on = find(comm);
  if (on == nullptr) { return ncclInvalidArgument; }
  global_memory::get().unmap(reinterpret_cast<std::uint64_t>(window->lsaFlatBase),
                             static_cast<std::size_t>(on->world->ranks()));
  return global_memory::get().free(window) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclDevCommCreate(ncclComm_t comm,
                               ncclDevCommRequirements_t const* wanted,
                               ncclDevComm_t* out)
{
  auto const on = find(comm);
  if (on == nullptr) { return ncclInvalidArgument; }
  // A state and an inbox for each barrier of all ranks together, the state of its own barriers, and an inbox for each rank.
  auto const barriers     = static_cast<std::size_t>(wanted->lsaBarrierCount);
  auto const ranks        = static_cast<std::size_t>(on->world->ranks());
  std::size_t const bytes = 4 * barriers * (3 + ranks);
  void* const resources   = global_memory::get().allocate(bytes, memory_kind::managed);
  std::memset(resources, 0, bytes);
  std::uint64_t const first = map_all(on, resources);
  if (first == 0) { return ncclRemoteError; }
  *out      = {};
  out->rank = out->lsaRank                = on->rank;
  out->nRanks                             = on->world->ranks();
  out->lsaSize                            = std::min(out->nRanks, nccl_world::reach.load());
  out->resourceWindow_inlined.lsaFlatBase = pointer(first);
  out->resourceWindow_inlined.stride4G    = 1;
  out->lsaBarrier                         = {.bufHandle = 0, .nBarriers = wanted->lsaBarrierCount};
  return ncclSuccess;
}

// The memory of the barriers stays: another rank may not have left the last one.
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, ncclDevComm_t const*)
{
  return find(comm) == nullptr ? ncclInvalidArgument : ncclSuccess;
}

}  // extern "C"

#endif  // NCCL_VERSION_CODE >= 22800
