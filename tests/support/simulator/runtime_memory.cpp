// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA runtime: memory.

#include "memory.hpp"
#include "runtime_state.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>

namespace tersum::simulator {

namespace {

// One side of a copy. Managed and pinned memory is both the host's and the device's.
struct side {
  allocation const* in;  // null: of the host
  bool of_device;
  bool inside;

  side(void const* at, std::size_t bytes)
    : in{global_memory::get().find(reinterpret_cast<std::uint64_t>(at))},
      of_device{in != nullptr && in->kind() == memory_kind::device},
      inside{in == nullptr || in->holds(reinterpret_cast<std::uint64_t>(at), bytes)}
  {
  }
};

cudaError_t allocate(void** memory, std::size_t bytes, memory_kind kind)
{
  if (memory == nullptr) { return cudaErrorInvalidValue; }
  if (auto const error = not_while_capturing(); error != cudaSuccess) { return error; }
  *memory = bytes == 0 ? nullptr : global_memory::get().allocate(bytes, kind);
  return bytes != 0 && *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t release(void* memory)
{
  if (memory == nullptr) { return cudaSuccess; }
  if (auto const error = not_while_capturing(); error != cudaSuccess) { return error; }
  wait_for_own_streams();
  return global_memory::get().free(memory) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t set_memory(void* to, int value, std::size_t bytes)
{
  if (bytes == 0) { return cudaSuccess; }
  side const target{to, bytes};
  if (target.in == nullptr || !target.inside) { return cudaErrorInvalidValue; }
  std::memset(to, value, bytes);
  target.in->mark_written_by_host(reinterpret_cast<std::uint64_t>(to), bytes);
  return cudaSuccess;
}

}  // namespace

cudaError_t copy_memory(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind)
{
  if (bytes == 0) { return cudaSuccess; }
  side const target{to, bytes}, source{from, bytes};
  bool const to_device   = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool const from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  bool const named       = kind != cudaMemcpyDefault;
  if (to == nullptr || from == nullptr || !target.inside || !source.inside ||
      (named && ((to_device && target.in == nullptr) || (!to_device && target.of_device) ||
                 (from_device && source.in == nullptr) || (!from_device && source.of_device)))) {
    return cudaErrorInvalidValue;
  }
  std::memmove(to, from, bytes);
  if (target.in != nullptr) {
    auto const first = reinterpret_cast<std::uint64_t>(to);
    if (source.in == nullptr) {
      target.in->mark_written_by_host(first, bytes);
    } else {
      auto const begin = reinterpret_cast<std::uint64_t>(from);
      for (std::size_t i = 0; i < bytes; ++i) {
        if (source.in->written(begin + i, 1)) { target.in->mark_written_by_host(first + i, 1); }
      }
    }
  }
  return cudaSuccess;
}

}  // namespace tersum::simulator

using namespace tersum::simulator;

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes)
{
  return result(allocate(memory, bytes, memory_kind::device));
}

cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned)
{
  return result(allocate(memory, bytes, memory_kind::managed));
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes)
{
  return result(allocate(memory, bytes, memory_kind::pinned));
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned)
{
  return cudaMallocHost(memory, bytes);
}

cudaError_t cudaFree(void* memory) { return result(release(memory)); }

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream)
{
  if (stream_of(stream) == nullptr) { return result(cudaErrorInvalidResourceHandle); }
  return cudaMalloc(memory, bytes);
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream)
{
  return result(enqueue(stream, [=] {
    return global_memory::get().free(memory) ? cudaSuccess : cudaErrorInvalidValue;
  }));
}

cudaError_t cudaFreeHost(void* memory) { return result(release(memory)); }

cudaError_t cudaMemcpyAsync(
  void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
  return result(enqueue(stream, [=] { return copy_memory(to, from, bytes, kind); }));
}

cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind)
{
  if (auto const error = not_while_capturing(); error != cudaSuccess) { return result(error); }
  return result(copy_memory(to, from, bytes, kind));
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream)
{
  return result(enqueue(stream, [=] { return set_memory(to, value, bytes); }));
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes)
{
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, void const* pointer)
{
  auto const* const in = global_memory::get().find(reinterpret_cast<std::uint64_t>(pointer));
  *attributes          = {};
  attributes->type     = cudaMemoryTypeUnregistered;
  if (in != nullptr) {
    void* const both          = const_cast<void*>(pointer);
    attributes->type          = in->kind() == memory_kind::device    ? cudaMemoryTypeDevice
                                : in->kind() == memory_kind::managed ? cudaMemoryTypeManaged
                                                                     : cudaMemoryTypeHost;
    attributes->devicePointer = both;
    attributes->hostPointer   = in->kind() == memory_kind::device ? nullptr : both;
  }
  return result(cudaSuccess);
}

}  // extern "C"
