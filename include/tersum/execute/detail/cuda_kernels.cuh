// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels: each is one body on the CUDA context; and how the host launches them.

#pragma once

#include <tersum/block/cuda_context.cuh>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/reduce/detail/array_reduction.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

// The namespace of what is compiled for a list of architectures: kernels, and the executor that launches them, whose type is in the name of
// every function on the way. So objects for unlike architectures, linked into one program, each launch kernels of their own; of equal names
// the linker would keep one.
//
// sm_800_900 of 800, 900. A macro does not expand itself again, so TERSUM_JOIN_AGAIN names it where the next scan reads it: there are more
// scans than architectures.
#define TERSUM_JOIN(joined, next, ...) TERSUM_JOIN_##__VA_OPT__(MORE)(joined##_##next, __VA_ARGS__)
#define TERSUM_JOIN_(joined, ...)      joined
#define TERSUM_JOIN_MORE(joined, ...)  TERSUM_JOIN_AGAIN TERSUM_NOTHING()()(joined, __VA_ARGS__)
#define TERSUM_JOIN_AGAIN()            TERSUM_JOIN
#define TERSUM_NOTHING()
#define TERSUM_SCAN(...)      TERSUM_SCAN_8(TERSUM_SCAN_8(TERSUM_SCAN_8(TERSUM_SCAN_8(__VA_ARGS__))))
#define TERSUM_SCAN_8(...)    TERSUM_SCAN_4(TERSUM_SCAN_4(__VA_ARGS__))
#define TERSUM_SCAN_4(...)    TERSUM_SCAN_2(TERSUM_SCAN_2(__VA_ARGS__))
#define TERSUM_SCAN_2(...)    TERSUM_SCAN_1(TERSUM_SCAN_1(__VA_ARGS__))
#define TERSUM_SCAN_1(...)    __VA_ARGS__
#define TERSUM_JOIN_LIST(...) TERSUM_SCAN(TERSUM_JOIN(sm, __VA_ARGS__))

#if defined(__CUDA_ARCH_LIST__)
#define TERSUM_ARCHITECTURES TERSUM_JOIN_LIST(__CUDA_ARCH_LIST__)
#else
#define TERSUM_ARCHITECTURES sm_any
#endif

namespace tersum::inline v0::detail {

//! @brief What kernels of a tuning see of the device.
template <class... Of>
using kernel_context = tuned_context<cuda_context, Of...>;

// A variable template, because nvcc does not take a member template of a dependent type in __launch_bounds__.
template <class Kernel, class Codec, class... Of>
inline constexpr int threads_of = Kernel::template threads<Codec, chosen<Of...>>;
template <class Kernel, class Codec, class... Of>
inline constexpr int blocks_of = Kernel::template blocks<Codec, chosen<Of...>>;

template <class Kernel, class... Of>
inline constexpr int block_kernel_threads = number_of<chosen<Of...>>(Kernel::threads);

// Whether every device that runs this build can overlap launches. With an older architecture in the build, a later device may run the kernel that
// was compiled for it, which has no wait: launched to overlap, it would read what is not written yet.
#if defined(__CUDA_ARCH_LIST__)
inline constexpr bool built_to_overlap = std::min({__CUDA_ARCH_LIST__}) >= 900;
#else
inline constexpr bool built_to_overlap = false;
#endif

//! @brief Whether a kernel is launched by a programmatic dependent launch, and so has to wait.
template <class Kernel, class... Of>
inline constexpr bool overlaps_launch =
  built_to_overlap&& overlapping_kernel<Kernel>&& chosen<Of...>.cuda.overlap_launches;

//! @brief Waits until the kernel before on the stream, whoever launched it, has ended and its stores are visible. It is the first
//! statement of a kernel that is launched to overlap, and every thread of it comes here: so this kernel ends after all before it. No kernel
//! lets the next one begin earlier than at its own end.
template <class Kernel, class... Of>
__device__ __forceinline__ void wait_for_kernel_before()
{
  if constexpr (overlaps_launch<Kernel, Of...>) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
  }
}

//! @brief How a kernel is launched: when the one before it on the stream has ended; while that ends, for which it must wait
//! (`wait_for_kernel_before`); or with all of its blocks resident together, or not at all.
enum class launch_kind : unsigned char { in_order, overlapping, together };

inline namespace TERSUM_ARCHITECTURES {

// Kernels are hidden: every shared library has its own, compiled for its own architectures.
template <class Kernel, class Codec, class Element, class... Of>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(
  threads_of<Kernel, Codec, Of...>, blocks_of<Kernel, Codec, Of...>)
  exchange_kernel(exchange_args<Codec, Element> args, Kernel kernel)
{
  wait_for_kernel_before<Kernel, Of...>();
  kernel(kernel_context<Of...>{}, args);
}

// A kernel on chunks. The number of the first chunk is an argument of its own: as a member of another one it would cost
// more instructions and registers for some codecs, with nvcc 13.0.
template <class Kernel, class Codec, class Element, class... Of>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(
  threads_of<Kernel, Codec, Of...>, blocks_of<Kernel, Codec, Of...>)
  chunk_kernel(exchange_args<Codec, Element> args, std::uint64_t first)
{
  Kernel kernel;
  kernel.first = first;
  kernel(kernel_context<Of...>{}, args);
}

// One of a call on arrays, which holds its arguments.
template <class Kernel, class... Of>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(
  block_kernel_threads<Kernel, Of...>) block_kernel(Kernel kernel)
{
  kernel(kernel_context<Of...>{});
}

template <class Item, class... Of>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(
  item_threads<kernel_context<Of...>>) item_kernel(Item item, std::size_t count)
{
  each_item(kernel_context<Of...>{}, item, count);
}

}  // namespace TERSUM_ARCHITECTURES

//! How many `loading_kernels` live on this thread of the host.
[[nodiscard]] inline int& kernels_loading() noexcept
{
  static thread_local int of_thread = 0;
  return of_thread;
}

[[nodiscard]] inline status cuda_status(cudaError_t error) noexcept
{
  if (error == cudaSuccess) { return {}; }
  return {
    error_code::execution_failed, "the CUDA runtime refused a launch", static_cast<int>(error)};
}

//! @brief Launches a kernel, or loads it under `loading_kernels`, and returns the error of this launch.
//!
//! The runtime also remembers errors of other calls, which this one does not return: after a caller has asked whether a
//! stream is ready, for instance, the last error may be that it was not.
template <launch_kind Kind = launch_kind::in_order, class... Parameters>
[[nodiscard]] status launch_kernel(void (*kernel)(Parameters...),
                                   unsigned blocks,
                                   int threads,
                                   int shared,
                                   cudaStream_t stream,
                                   std::type_identity_t<Parameters>... args)
{
  if (kernels_loading() > 0) {
    cudaFuncAttributes known{};
    return cuda_status(cudaFuncGetAttributes(&known, kernel));
  }
  cudaLaunchAttribute attribute{};
  if (Kind == launch_kind::overlapping) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  } else {
    attribute.id              = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  cudaLaunchConfig_t config{};
  config.gridDim          = dim3(blocks);
  config.blockDim         = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared);
  config.stream           = stream;
  config.attrs            = &attribute;
  config.numAttrs         = Kind == launch_kind::in_order ? 0 : 1;
  void* pointers[]        = {static_cast<void*>(&args)...};
  return cuda_status(cudaLaunchKernelExC(&config, reinterpret_cast<void const*>(kernel), pointers));
}

//! @brief Blocks of a kernel that the current device has resident at once; 1 where it has no cooperative launches. The host alone
//! computes it, and once for each device.
//! @tparam Of  Types that no two kernels share.
template <class... Of>
[[nodiscard]] status count_resident(void const* kernel,
                                    int threads,
                                    int shared,
                                    std::uint64_t& blocks)
{
  static std::atomic<std::uint64_t> known[32]{};  // of the first devices; 0 before
  int device = 0, cooperates = 0, processors = 0, of_processor = 0;
  cudaError_t error = cudaGetDevice(&device);
  bool const kept   = error == cudaSuccess && device < static_cast<int>(std::size(known));
  blocks            = kept ? known[device].load(std::memory_order_relaxed) : 0;
  if (blocks > 0) { return {}; }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&cooperates, cudaDevAttrCooperativeLaunch, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error == cudaSuccess) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &of_processor, kernel, threads, static_cast<std::size_t>(shared));
  }
  blocks = cooperates == 0 ? 1 : static_cast<std::uint64_t>(processors * of_processor);
  if (kept && error == cudaSuccess) { known[device].store(blocks, std::memory_order_relaxed); }
  return cuda_status(error);
}

}  // namespace tersum::inline v0::detail
