// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The functions of NCCL that interop/nccl_symmetric.cuh and nccl_fused.cuh use, for ranks that are streams of one device, be it a GPU or
//! simulated: windows are mappings of their memory, and the device's part of NCCL is NCCL's own, which the kernels include.

#include "interop/simulated/communicator.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#if NCCL_VERSION_CODE >= 22800

#include <nccl_device.h>

#include <algorithm>
#include <map>
#include <mutex>

using namespace tersum::simulator;

namespace {

template <class Function>
Function* driver(char const* name)
{
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  auto const error =
    cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
  return error == cudaSuccess ? reinterpret_cast<Function*>(found) : nullptr;
}
#define TERSUM_DRIVER(function) driver<decltype(function)>(#function)

constexpr std::uint64_t stride = std::uint64_t{1} << 32;

char* pointer(std::uint64_t address) { return reinterpret_cast<char*>(address); }

//! Device memory that can be mapped once more.
struct piece {
  CUmemGenericAllocationHandle handle;
  std::size_t bytes;
};

//! What one rank sees of all ranks' pieces, one every 4 GiB.
struct mapping {
  std::uint64_t first;
  std::size_t bytes, ranks;
};

struct registry {
  std::mutex guard;
  std::map<void*, piece> pieces;            // by where a rank has its own
  std::map<ncclWindow_t, mapping> windows;  // by the device's record

  static registry& get()
  {
    static registry* const one = new registry;
    return *one;
  }
};

CUmemAllocationProp here()
{
  CUmemAllocationProp result{};
  result.type          = CU_MEM_ALLOCATION_TYPE_PINNED;
  result.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  cudaGetDevice(&result.location.id);
  return result;
}

bool place(std::uint64_t at, piece const& what)
{
  static auto* const map    = TERSUM_DRIVER(cuMemMap);
  static auto* const access = TERSUM_DRIVER(cuMemSetAccess);
  CUmemAccessDesc const all{here().location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return map(at, what.bytes, 0, what.handle, 0) == CUDA_SUCCESS &&
         access(at, what.bytes, &all, 1) == CUDA_SUCCESS;
}

// Null where there is none.
void* allocate(std::size_t bytes)
{
  static auto* const create      = TERSUM_DRIVER(cuMemCreate);
  static auto* const reserve     = TERSUM_DRIVER(cuMemAddressReserve);
  static auto* const granularity = TERSUM_DRIVER(cuMemGetAllocationGranularity);
  if (create == nullptr || reserve == nullptr || granularity == nullptr) { return nullptr; }
  CUmemAllocationProp const of = here();
  std::size_t unit             = 0;
  piece made{};
  CUdeviceptr at = 0;
  if (granularity(&unit, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS) { return nullptr; }
  made.bytes = (bytes + unit - 1) / unit * unit;
  if (create(&made.handle, made.bytes, &of, 0) != CUDA_SUCCESS ||
      reserve(&at, made.bytes, 0, 0, 0) != CUDA_SUCCESS || !place(at, made)) {
    return nullptr;
  }
  std::lock_guard const lock{registry::get().guard};
  registry::get().pieces[pointer(at)] = made;
  return pointer(at);
}

bool unmap(std::uint64_t at, std::size_t bytes)
{
  static auto* const end = TERSUM_DRIVER(cuMemUnmap);
  return end(at, bytes) == CUDA_SUCCESS;
}

// Memory of all ranks once more. Collective.
mapping map_all(communicator const& on, void* mine)
{
  static auto* const reserve = TERSUM_DRIVER(cuMemAddressReserve);
  piece own{};
  {
    std::lock_guard const lock{registry::get().guard};
    own = registry::get().pieces.at(mine);
  }
  auto const all    = on->world->share(on->rank, reinterpret_cast<void*>(own.handle));
  CUdeviceptr first = 0;
  if (all.empty() || reserve(&first, all.size() * stride, 0, 0, 0) != CUDA_SUCCESS) { return {}; }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    auto const handle = reinterpret_cast<CUmemGenericAllocationHandle>(all[rank]);
    if (!place(first + rank * stride, {handle, own.bytes})) { return {}; }
  }
  return {first, own.bytes, all.size()};
}

}  // namespace

extern "C" {

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes)
{
  *memory = allocate(bytes);
  return *memory == nullptr ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ncclMemFree(void* memory)
{
  static auto* const forget  = TERSUM_DRIVER(cuMemRelease);
  static auto* const release = TERSUM_DRIVER(cuMemAddressFree);
  std::lock_guard const lock{registry::get().guard};
  auto const found = registry::get().pieces.find(memory);
  if (found == registry::get().pieces.end()) { return ncclInvalidArgument; }
  auto const [handle, bytes] = found->second;
  registry::get().pieces.erase(found);
  auto const at = reinterpret_cast<CUdeviceptr>(memory);
  return unmap(at, bytes) && forget(handle) == CUDA_SUCCESS && release(at, bytes) == CUDA_SUCCESS
           ? ncclSuccess
           : ncclUnhandledCudaError;
}

ncclResult_t ncclCommWindowRegister(
  ncclComm_t comm, void* memory, std::size_t bytes, ncclWindow_t* window, int flags)
{
  auto const on = find(comm);
  {
    std::lock_guard const lock{registry::get().guard};
    auto const found = registry::get().pieces.find(memory);
    if (on == nullptr || found == registry::get().pieces.end() || found->second.bytes < bytes ||
        flags != NCCL_WIN_COLL_SYMMETRIC) {
      return ncclInvalidArgument;
    }
  }
  mapping const all = map_all(on, memory);
  if (all.first == 0) { return ncclRemoteError; }
  ncclWindow_vidmem record{};
  record.lsaFlatBase = pointer(all.first);
  record.lsaRank = record.worldRank = on->rank;
  record.stride4G                   = 1;
  if (cudaMalloc(window, sizeof record) != cudaSuccess ||
      cudaMemcpy(*window, &record, sizeof record, cudaMemcpyHostToDevice) != cudaSuccess) {
    return ncclUnhandledCudaError;
  }
  std::lock_guard const lock{registry::get().guard};
  registry::get().windows[*window] = all;
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
  static auto* const release = TERSUM_DRIVER(cuMemAddressFree);
  mapping all{};
  {
    std::lock_guard const lock{registry::get().guard};
    auto const found = registry::get().windows.find(window);
    if (find(comm) == nullptr || found == registry::get().windows.end()) {
      return ncclInvalidArgument;
    }
    all = found->second;
    registry::get().windows.erase(found);
  }
  bool ok = true;
  for (std::size_t rank = 0; rank < all.ranks; ++rank) {
    ok = unmap(all.first + rank * stride, all.bytes) && ok;
  }
  ok = release(all.first, all.ranks * stride) == CUDA_SUCCESS && ok;
  return cudaFree(window) == cudaSuccess && ok ? ncclSuccess : ncclUnhandledCudaError;
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
  void* const resources   = allocate(bytes);
  if (resources == nullptr || cudaMemset(resources, 0, bytes) != cudaSuccess ||
      cudaStreamSynchronize(nullptr) != cudaSuccess) {
    return ncclUnhandledCudaError;
  }
  std::uint64_t const first = map_all(on, resources).first;
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
