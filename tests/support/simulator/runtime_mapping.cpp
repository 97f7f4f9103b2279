// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The driver's functions that map memory: what is reserved in places of 4 GiB is mapped once more, smaller pieces in place.

#include "memory.hpp"
#include "runtime_state.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <map>
#include <string_view>

namespace tersum::simulator {

namespace {

constexpr std::size_t place = std::size_t{1} << 32;

struct created {
  std::size_t bytes;
  void* memory;
};

CUresult create(CUmemGenericAllocationHandle* handle,
                std::size_t bytes,
                CUmemAllocationProp const*,
                unsigned long long)
{
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new created{bytes, nullptr});
  return CUDA_SUCCESS;
}

CUresult release(CUmemGenericAllocationHandle handle)
{
  delete reinterpret_cast<created*>(handle);
  return CUDA_SUCCESS;
}

CUresult granularity(std::size_t* bytes,
                     CUmemAllocationProp const*,
                     CUmemAllocationGranularity_flags)
{
  *bytes = 1;
  return CUDA_SUCCESS;
}

CUresult reserve(CUdeviceptr* at, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long)
{
  auto& memory = global_memory::get();
  *at = bytes < place ? reinterpret_cast<CUdeviceptr>(memory.allocate(bytes, memory_kind::device))
                      : memory.reserve(bytes / place);
  return *at == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult end_reservation(CUdeviceptr at, std::size_t bytes)
{
  bool const ended = bytes >= place || global_memory::get().free(reinterpret_cast<void const*>(at));
  return ended ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult map(CUdeviceptr at,
             std::size_t bytes,
             std::size_t,
             CUmemGenericAllocationHandle handle,
             unsigned long long)
{
  auto& what = *reinterpret_cast<created*>(handle);
  if (bytes > what.bytes) { return CUDA_ERROR_INVALID_VALUE; }
  if (global_memory::get().find(at) != nullptr) {
    what.memory = reinterpret_cast<void*>(at);
  } else if (what.memory == nullptr || at % place != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  } else {
    global_memory::get().map(at, what.memory);
  }
  return CUDA_SUCCESS;
}

CUresult unmap(CUdeviceptr at, std::size_t)
{
  global_memory::get().unmap(at);
  return CUDA_SUCCESS;
}

CUresult set_access(CUdeviceptr, std::size_t, CUmemAccessDesc const*, std::size_t)
{
  return CUDA_SUCCESS;
}

template <auto Function>
void* address()
{
  return reinterpret_cast<void*>(Function);
}

}  // namespace

}  // namespace tersum::simulator

using namespace tersum::simulator;

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(char const* symbol,
                                                        void** function,
                                                        unsigned,
                                                        unsigned long long,
                                                        cudaDriverEntryPointQueryResult* found)
{
  static std::map<std::string_view, void*> const known{
    {"cuMemCreate", address<create>()},
    {"cuMemRelease", address<release>()},
    {"cuMemGetAllocationGranularity", address<granularity>()},
    {"cuMemAddressReserve", address<reserve>()},
    {"cuMemAddressFree", address<end_reservation>()},
    {"cuMemMap", address<map>()},
    {"cuMemUnmap", address<unmap>()},
    {"cuMemSetAccess", address<set_access>()}};
  auto const at = known.find(symbol);
  *function     = at == known.end() ? nullptr : at->second;
  *found = at == known.end() ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
