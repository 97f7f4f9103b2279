// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA runtime: modules, kernels and launches.

#include "fault.hpp"
#include "launch.hpp"
#include "launch_report.hpp"
#include "modules.hpp"
#include "runtime_state.hpp"

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstring>
#include <map>
#include <set>

namespace tersum::simulator {

namespace {

// Limits of sm_90.
constexpr std::size_t most_shared          = 227 * 1024;
constexpr std::size_t shared_of_processor  = 228 * 1024;
constexpr std::size_t shared_of_system     = 1024;  // of each block
constexpr int threads_of_processor         = 2048;
constexpr int blocks_of_processor          = 32;
constexpr std::uint32_t most_block_threads = 1024;

struct registry {
  std::mutex guard;
  std::map<void const*, registered_kernel> kernels;  // by the function on the host
  std::set<registered_kernel const*> loaded;

  static registry& get()
  {
    static registry* const one = new registry;
    return *one;
  }

  // Of the function on the host, or of a `cudaKernel_t`.
  registered_kernel* find(void const* which)
  {
    std::lock_guard const lock{guard};
    if (auto const at = kernels.find(which); at != kernels.end()) { return &at->second; }
    for (auto& [function, kernel] : kernels) {
      if (&kernel == which) { return &kernel; }
    }
    return nullptr;
  }
};

thread_local unsigned loads = 0, occupancy_queries = 0;

// Whether the kernel was loaded before.
bool load(registered_kernel const* kernel)
{
  auto& known = registry::get();
  std::lock_guard const lock{known.guard};
  return !known.loaded.insert(kernel).second;
}

struct call_configuration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<call_configuration> configurations;

// Registers are those that ptxas counts, which nobody did: the occupancy is that of threads and shared memory alone.
int blocks_of_multiprocessor(program const& kernel, std::uint32_t threads, std::size_t shared)
{
  std::size_t const memory = kernel.static_shared + shared + shared_of_system;
  return std::min({blocks_of_processor,
                   threads_of_processor / static_cast<int>((threads + 31) / 32 * 32),
                   static_cast<int>(shared_of_processor / memory)});
}

cudaError_t check_shape(program const& kernel,
                        registered_kernel const& registered,
                        launch_shape const& shape)
{
  auto const& grid         = shape.grid;
  auto const& block        = shape.block;
  std::size_t const shared = shape.dynamic_shared;
  bool const empty =
    grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || block[0] == 0 || block[1] == 0 || block[2] == 0;
  if (empty || grid[0] > 0x7fffffffU || grid[1] > 65535 || grid[2] > 65535 ||
      block[0] > most_block_threads || block[1] > most_block_threads || block[2] > 64 ||
      std::uint64_t{block[0]} * block[1] * block[2] > most_block_threads) {
    return cudaErrorInvalidConfiguration;
  }
  if (block[0] * block[1] * block[2] > kernel.source.most_threads) {
    return cudaErrorLaunchOutOfResources;
  }
  if (shared > static_cast<std::size_t>(registered.dynamic_shared_limit) ||
      kernel.static_shared + shared > most_shared) {
    return cudaErrorInvalidValue;
  }
  auto const resident = static_cast<std::uint64_t>(multiprocessors()) *
                        static_cast<std::uint64_t>(
                          blocks_of_multiprocessor(kernel, block[0] * block[1] * block[2], shared));
  if (shape.together && std::uint64_t{grid[0]} * grid[1] * grid[2] > resident) {
    return cudaErrorCooperativeLaunchTooLarge;
  }
  return cudaSuccess;
}

cudaError_t launch(registered_kernel* registered,
                   launch_shape const& shape,
                   void** arguments,
                   cudaStream_t stream)
{
  if (registered == nullptr) { return cudaErrorInvalidDeviceFunction; }
  loads += load(registered) ? 0 : 1;
  try {
    program const& kernel = registered->in->kernel(registered->name);
    if (auto const error = check_shape(kernel, *registered, shape); error != cudaSuccess) {
      return error;
    }
    if (!kernel.contractions.empty()) {
      fail(kernel.contractions.front(), ", in the kernel ", kernel.name);
    }
    std::vector<std::byte> parameters(kernel.parameter_bytes);
    for (std::size_t i = 0; i < kernel.parameter_offsets.size(); ++i) {
      std::memcpy(parameters.data() + kernel.parameter_offsets[i],
                  arguments[i],
                  kernel.source.parameters[i].bytes);
    }
    return enqueue(stream, [&kernel, shape, parameters = std::move(parameters)] {
      try {
        launch_counts const counts =
          run_kernel(kernel, shape, parameters, launch_report::counts_traffic());
        launch_report::get().add(kernel, shape, counts);
        return cudaSuccess;
      } catch (fault const& f) {
        break_device(f.what());
        return cudaErrorLaunchFailure;
      }
    });
  } catch (fault const& f) {
    break_device(f.what());
    return cudaErrorLaunchFailure;
  }
}

launch_shape shape_of(dim3 grid, dim3 block, std::size_t shared)
{
  return {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared};
}

}  // namespace

unsigned launches_that_load() { return loads; }

}  // namespace tersum::simulator

using namespace tersum::simulator;

extern "C" {

struct fat_binary_wrapper {
  int magic, version;
  void const* data;
  void* rest;
};

void** __cudaRegisterFatBinary(void* wrapper)
{
  std::string text = ptx_of_fat_binary(static_cast<fat_binary_wrapper*>(wrapper)->data);
  try {
    return reinterpret_cast<void**>(new loaded_module{std::move(text)});
  } catch (fault const& f) {
    break_device(f.what());
    return nullptr;
  }
}

void __cudaRegisterFatBinaryEnd(void**) {}

char __cudaInitModule(void**) { return 1; }

// Modules live as long as the program: work that is recorded may still need them.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** module,
                            char const* host_function,
                            char*,
                            char const* name,
                            int,
                            uint3*,
                            uint3*,
                            dim3*,
                            dim3*,
                            int*)
{
  auto& known = registry::get();
  std::lock_guard const lock{known.guard};
  known.kernels.emplace(host_function,
                        registered_kernel{reinterpret_cast<loaded_module*>(module), name});
}

// Variables of a module are its own: no function here copies to or from them by name.
void __cudaRegisterVar(void**, char*, char*, char const*, int, std::size_t, int, int) {}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, void const* host_function)
{
  *kernel = reinterpret_cast<cudaKernel_t>(registry::get().find(host_function));
  return *kernel != nullptr ? cudaSuccess : result(cudaErrorInvalidDeviceFunction);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream)
{
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream)
{
  if (configurations.empty()) { return result(cudaErrorMissingConfiguration); }
  auto const& last                    = configurations.back();
  *grid                               = last.grid;
  *block                              = last.block;
  *shared                             = last.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  configurations.pop_back();
  return cudaSuccess;
}

cudaError_t cudaProfilerStart()
{
  launch_report::get().mark(true);
  return result(cudaSuccess);
}

cudaError_t cudaProfilerStop()
{
  launch_report::get().mark(false);
  return result(cudaSuccess);
}

cudaError_t cudaLaunchKernel(void const* function,
                             dim3 grid,
                             dim3 block,
                             void** arguments,
                             std::size_t shared,
                             cudaStream_t stream)
{
  return result(
    launch(registry::get().find(function), shape_of(grid, block, shared), arguments, stream));
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel,
                               dim3 grid,
                               dim3 block,
                               void** arguments,
                               std::size_t shared,
                               cudaStream_t stream)
{
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* config,
                                void const* function,
                                void** arguments)
{
  launch_shape shape = shape_of(config->gridDim, config->blockDim, config->dynamicSmemBytes);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    auto const& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization) {
      shape.overlaps = attribute.val.programmaticStreamSerializationAllowed != 0;
    } else if (attribute.id == cudaLaunchAttributeCooperative) {
      shape.together = attribute.val.cooperative != 0;
    } else {
      return result(cudaErrorNotSupported);
    }
  }
  // No documentation says that a launch may be both.
  if (shape.overlaps && shape.together) { return result(cudaErrorNotSupported); }
  return result(launch(registry::get().find(function), shape, arguments, config->stream));
}

cudaError_t cudaLaunchCooperativeKernel(void const* function,
                                        dim3 grid,
                                        dim3 block,
                                        void** arguments,
                                        std::size_t shared,
                                        cudaStream_t stream)
{
  launch_shape shape = shape_of(grid, block, shared);
  shape.together     = true;
  return result(launch(registry::get().find(function), shape, arguments, stream));
}

cudaError_t cudaFuncSetAttribute(void const* function, cudaFuncAttribute attribute, int value)
{
  auto* const kernel = registry::get().find(function);
  if (kernel == nullptr) { return result(cudaErrorInvalidDeviceFunction); }
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) { return result(cudaSuccess); }
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) > most_shared) {
    return result(cudaErrorInvalidValue);
  }
  kernel->dynamic_shared_limit = value;
  return result(cudaSuccess);
}

// But for registers, which only ptxas counts.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void const* function)
{
  auto* const registered = registry::get().find(function);
  if (registered == nullptr) { return result(cudaErrorInvalidDeviceFunction); }
  load(registered);
  try {
    program const& kernel                 = registered->in->kernel(registered->name);
    *attributes                           = {};
    attributes->sharedSizeBytes           = kernel.static_shared;
    attributes->localSizeBytes            = kernel.local_bytes;
    attributes->maxThreadsPerBlock        = static_cast<int>(kernel.source.most_threads);
    attributes->maxDynamicSharedSizeBytes = registered->dynamic_shared_limit;
    attributes->ptxVersion = attributes->binaryVersion = 90;
    return result(cudaSuccess);
  } catch (fault const& f) {
    break_device(f.what());
    return cudaErrorLaunchFailure;
  }
}

// How often the host has asked for an occupancy, for tests that run on a device, too.
unsigned tersum_occupancy_queries() { return occupancy_queries; }

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
  int* blocks, void const* function, int threads, std::size_t shared, unsigned)
{
  ++occupancy_queries;
  auto* const registered = registry::get().find(function);
  if (registered == nullptr) { return result(cudaErrorInvalidDeviceFunction); }
  try {
    program const& kernel = registered->in->kernel(registered->name);
    *blocks = blocks_of_multiprocessor(kernel, static_cast<std::uint32_t>(threads), shared);
    return result(cudaSuccess);
  } catch (fault const& f) {
    break_device(f.what());
    return cudaErrorLaunchFailure;
  }
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          void const* function,
                                                          int threads,
                                                          std::size_t shared)
{
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks, function, threads, shared, 0);
}

}  // extern "C"
