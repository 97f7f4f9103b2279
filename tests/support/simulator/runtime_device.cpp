// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA runtime: the one device there is.

#include "runtime_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tersum::simulator {

int multiprocessors()
{
  char const* const wanted = std::getenv("TERSUM_SIMULATED_MULTIPROCESSORS");
  return wanted == nullptr ? 1 : std::max(1, std::atoi(wanted));
}

}  // namespace tersum::simulator

using namespace tersum::simulator;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count)
{
  *count = 1;
  return result(cudaSuccess);
}

cudaError_t cudaGetDevice(int* device)
{
  *device = 0;
  return result(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
  return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

//! Forgets the error of a kernel.
cudaError_t cudaDeviceReset()
{
  runtime_state::get().broken = cudaSuccess;
  cudaGetLastError();
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version)
{
  *version = CUDART_VERSION;
  return result(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device)
{
  if (device != 0) { return result(cudaErrorInvalidDevice); }
  *properties = {};
  std::strcpy(properties->name, "tersum PTX simulator");
  properties->major                      = 9;
  properties->minor                      = 0;
  properties->warpSize                   = 32;
  properties->multiProcessorCount        = multiprocessors();
  properties->cooperativeLaunch          = 1;
  properties->maxThreadsPerBlock         = 1024;
  properties->sharedMemPerBlock          = 48 * 1024;
  properties->sharedMemPerBlockOptin     = 227 * 1024;
  properties->sharedMemPerMultiprocessor = 228 * 1024;
  properties->l2CacheSize                = 1 << 14;
  properties->totalGlobalMem             = std::size_t{1} << 33;
  return result(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device)
{
  cudaDeviceProp properties{};
  if (auto const error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) {
    return error;
  }
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrWarpSize: *value = properties.warpSize; break;
    case cudaDevAttrCooperativeLaunch: *value = properties.cooperativeLaunch; break;
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = properties.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(properties.sharedMemPerBlock);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrL2CacheSize: *value = properties.l2CacheSize; break;
    default: return result(cudaErrorInvalidValue);
  }
  return result(cudaSuccess);
}

char const* cudaGetErrorName(cudaError_t error)
{
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    default: return "an error of the simulated CUDA runtime";
  }
}

char const* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

}  // extern "C"
