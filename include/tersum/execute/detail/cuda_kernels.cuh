// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels: each is one body on the CUDA context.

#pragma once

#include <tersum/block/cuda_context.cuh>
#include <tersum/block/detail/each_item.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/execute/detail/architectures.cuh>
#include <tersum/reduce/detail/array_reduction.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What kernels of a tuning see of the device. Kernels with the defaults name none.
template <class... Of>
struct kernel_context {
  using type = cuda_context;
};

template <tuning_holder Of>
struct kernel_context<Of> {
  using type = tuned_context<cuda_context, Of>;
};

template <class... Of>
using kernel_context_t = typename kernel_context<Of...>::type;

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

template <class Kernel, class... Of>
inline constexpr launch_kind own_launch_kind =
  overlaps_launch<Kernel, Of...> ? launch_kind::overlapping : launch_kind::in_order;

inline namespace TERSUM_ARCHITECTURES {

// Kernels are hidden: every shared library has its own, compiled for its own architectures.
template <class Kernel, class Codec, class Element, class... Of>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(
  threads_of<Kernel, Codec, Of...>, blocks_of<Kernel, Codec, Of...>)
  exchange_kernel(exchange_args<Codec, Element> args, Kernel kernel)
{
  wait_for_kernel_before<Kernel, Of...>();
  kernel(kernel_context_t<Of...>{}, args);
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
  kernel(kernel_context_t<Of...>{}, args);
}

// One of a call on arrays, which holds its arguments.
template <class Kernel, class... Of>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(
  block_kernel_threads<Kernel, Of...>) block_kernel(Kernel kernel)
{
  kernel(kernel_context_t<Of...>{});
}

template <class Item, class... Of>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(
  item_threads<kernel_context_t<Of...>>) item_kernel(Item item, std::size_t count)
{
  each_item(kernel_context_t<Of...>{}, item, count);
}

}  // namespace TERSUM_ARCHITECTURES

}  // namespace tersum::inline v0::detail
