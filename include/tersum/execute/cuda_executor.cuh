// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges on a CUDA stream.

#pragma once

#if !defined(__CUDACC__)
#error                                                                                             \
  "tersum/execute/cuda_executor.cuh needs nvcc; include <tersum/tersum.hpp> from other compilers"
#endif

#include <tersum/codec.hpp>
#include <tersum/exchange/exchange_launches.hpp>
#include <tersum/execute/detail/cuda_kernels.cuh>
#include <tersum/execute/executor.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tersum::inline v0 {

//! What names a CUDA stream by a member `get`, as `cuda::stream_ref` does.
template <class T>
concept stream_holder = requires(T const& of)
{
  {
    of.get()
    } -> std::convertible_to<cudaStream_t>;
};

//! @brief While one lives, calls of its host thread on executors of CUDA enqueue nothing: what they would launch is loaded.
//!
//! Drivers load a kernel when it is launched first, and may wait until the device is idle: for ever, if a kernel on it
//! waits for a rank that the same thread has still to launch. A thread with several ranks makes the call of each once
//! before, under this, or has all kernels loaded at the start (CUDA_MODULE_LOADING=EAGER in the environment):
//!
//!     { tersum::loading_kernels const scope; status = all_reduce_mean(exec, plan, gradient, state, workspace, std::cref(fused)); }
class loading_kernels {
 public:
  loading_kernels() noexcept { ++detail::kernels_loading(); }
  loading_kernels(loading_kernels const&)            = delete;
  loading_kernels& operator=(loading_kernels const&) = delete;
  ~loading_kernels() { --detail::kernels_loading(); }

  [[nodiscard]] static bool lives() noexcept { return detail::kernels_loading() > 0; }
};

inline namespace TERSUM_ARCHITECTURES {

//! @brief Enqueues on one stream of the current device. Never synchronizes, allocates or reads device memory.
//!
//! *Memory*: all that its calls are given is device memory. Calls check whether addresses are aligned, but not where they
//! lie. A state that `initialize` has not filled for the same plan is undefined behaviour: no call reads it back, but those of
//! `exchange/check_device_state.cuh`. *Stream*: name one, as a `cudaStream_t`, or as what converts to it or holds it; there is
//! no default. A whole exchange can be captured in a CUDA graph, since what changes from step to step lies in the state.
//! *Errors*: `execution_failed` where the CUDA runtime refuses a launch or a copy, with its number in `status::native`.
//!
//! A short kernel may start while the kernel before it on the stream ends, whoever launched that; it waits for that end before it touches
//! memory (`cuda_tuning::overlap_launches`). A selection of more than `cuda_tuning::select_alone` chunks is a cooperative launch of as many
//! blocks as the whole device has resident at once, which the runtime may refuse where the stream has fewer multiprocessors, as in a green
//! context. For chunks above 8192 coordinates each call raises a kernel's limit of shared memory, on the host.
//! @tparam Of  A `tuning_holder`, or nothing: the defaults.
template <tuning_holder... Of>
struct basic_cuda_executor : exchange_launches<basic_cuda_executor<Of...>> {
  static_assert(sizeof...(Of) <= 1, "tersum: basic_cuda_executor takes one tuning_holder, or none");
  static constexpr tuning tuned = detail::chosen<Of...>;

  cudaStream_t stream;

  explicit constexpr basic_cuda_executor(cudaStream_t on) noexcept : stream{on} {}
  explicit basic_cuda_executor(std::nullptr_t) = delete;

  //! On the stream that `on.get()` names: a `cuda::stream_ref`, or a caller's class that owns a stream.
  template <stream_holder Stream>
  explicit constexpr basic_cuda_executor(Stream const& on) noexcept : stream{on.get()}
  {
  }

  [[nodiscard]] status check() const noexcept { return {}; }

  //! @name Arrays
  //! Called by exchanges and collectives, which check the arguments first.
  //! @{
  //! to[i] = op(a[i], b[i]) for `count` elements of device memory; `to` may be `a` or `b`.
  template <reduce_op Op>
  [[nodiscard]] status reduce(Op const& op,
                              typename Op::element* to,
                              typename Op::element const* a,
                              typename Op::element const* b,
                              std::size_t count) const
  {
    return detail::reduce_on_blocks(*this, op, to, a, b, count);
  }

  //! item(context, i) for 0 <= i < count, one per thread.
  template <class Item>
  [[nodiscard]] status each(Item const& item, std::size_t count) const
  {
    return launch(detail::item_kernel<Item, Of...>,
                  (count + tuned.cuda.item_threads - 1) / tuned.cuda.item_threads,
                  tuned.cuda.item_threads,
                  0,
                  item,
                  count);
  }

  //! Copies `count` elements within device memory.
  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    if (count == 0 || loading_kernels::lives()) { return {}; }
    return detail::cuda_status(
      cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToDevice, stream));
  }

  //! Sets `count` elements of device memory to zero.
  template <class T>
  [[nodiscard]] status clear(T* to, std::size_t count) const
  {
    if (count == 0 || loading_kernels::lives()) { return {}; }
    return detail::cuda_status(cudaMemsetAsync(to, 0, count * sizeof(T), stream));
  }

  //! Launches a kernel of exchange_kernels.hpp or low_rank_launches.hpp; none for 0 blocks.
  template <class Kernel, class Codec, class Element>
  [[nodiscard]] status run(Kernel const& kernel,
                           std::uint64_t blocks,
                           detail::exchange_args<Codec, Element> const& args) const
  {
    constexpr int threads = detail::threads_of<Kernel, Codec, Of...>;
    constexpr int shared  = Kernel::template shared<Codec>;
    if constexpr (std::is_base_of_v<detail::first_chunk, Kernel>) {
      auto* const on_chunks = detail::chunk_kernel<Kernel, Codec, Element, Of...>;
      return launch(on_chunks, blocks, threads, shared, args, kernel.first);
    } else {
      auto* const function = detail::exchange_kernel<Kernel, Codec, Element, Of...>;
      constexpr auto kind  = detail::overlaps_launch<Kernel, Of...>
                               ? detail::launch_kind::overlapping
                               : detail::launch_kind::in_order;
      return launch<kind>(function, blocks, threads, shared, args, kernel);
    }
  }

  //! Launches kernel(context) in blocks of `Kernel::threads` threads, a number or a member of `cuda_tuning`, with
  //! `Kernel::shared` bytes of shared memory; none for 0 blocks. The kernel is passed by value and holds its arguments.
  template <class Kernel>
  [[nodiscard]] status run(Kernel const& kernel, std::uint64_t blocks) const
  {
    constexpr int threads = detail::block_kernel_threads<Kernel, Of...>;
    auto* const function  = detail::block_kernel<Kernel, Of...>;
    return launch(function, blocks, threads, Kernel::shared, kernel);
  }
  //! @}

  //! @name Kernels whose blocks wait for each other
  //! The same by a cooperative launch, in as many blocks as the device has resident at once and no more than `most`.
  //! @{
  template <class Kernel, class Codec, class Element>
  [[nodiscard]] status run_together(Kernel const& kernel,
                                    std::uint64_t most,
                                    detail::exchange_args<Codec, Element> const& args) const
  {
    return launch_together(detail::exchange_kernel<Kernel, Codec, Element, Of...>,
                           most,
                           detail::threads_of<Kernel, Codec, Of...>,
                           Kernel::template shared<Codec>,
                           args,
                           kernel);
  }
  template <class Kernel>
  [[nodiscard]] status run_together(Kernel const& kernel, std::uint64_t most) const
  {
    return launch_together(detail::block_kernel<Kernel, Of...>,
                           most,
                           detail::block_kernel_threads<Kernel, Of...>,
                           Kernel::shared,
                           kernel);
  }
  //! @}

 private:
  // Launches a kernel of so many blocks; none for 0 blocks.
  template <detail::launch_kind Kind = detail::launch_kind::in_order,
            class... Parameters,
            class... Args>
  [[nodiscard]] status launch(void (*kernel)(Parameters...),
                              std::uint64_t blocks,
                              int threads,
                              int shared,
                              Args const&... args) const
  {
    if (blocks == 0) { return {}; }
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
      return {error_code::unsupported,
              "gradient needs more blocks than a grid has: exchange it in parts"};
    }
    if (shared > 48 * 1024) {
      if (auto const s = detail::cuda_status(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
          !s.ok()) {
        return s;
      }
    }
    return detail::launch_kernel<Kind>(
      kernel, static_cast<unsigned>(blocks), threads, shared, stream, args...);
  }

  // Launches a kernel of blocks that are resident together, as many as fit, and at most so many.
  template <class... Parameters, class... Args>
  [[nodiscard]] status launch_together(void (*kernel)(Parameters...),
                                       std::uint64_t most,
                                       int threads,
                                       int shared,
                                       Args const&... args) const
  {
    std::uint64_t resident = 0;
    // Each pack of parameters names the kernel's type, and so the kernel.
    if (auto const s = detail::count_resident<basic_cuda_executor, Parameters...>(
          reinterpret_cast<void const*>(kernel), threads, shared, resident);
        !s.ok()) {
      return s;
    }
    std::uint64_t const blocks = std::min(most, resident);
    if (blocks <= 1) { return launch(kernel, 1, threads, shared, args...); }
    return launch<detail::launch_kind::together>(kernel, blocks, threads, shared, args...);
  }
};

}  // namespace TERSUM_ARCHITECTURES

//! @brief With the default tuning.
using cuda_executor = basic_cuda_executor<>;

static_assert(launching_executor<cuda_executor>, "tersum: must model tersum::launching_executor");

}  // namespace tersum::inline v0
