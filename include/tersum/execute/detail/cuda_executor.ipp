// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of cuda_executor.cuh: launches, sums and copies on a CUDA device.

namespace tersum::inline v0 {

namespace detail {

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
  if (loading_kernels::lives()) {
    cudaFuncAttributes known{};
    return cuda_status(cudaFuncGetAttributes(&known, kernel));
  }
  void* pointers[] = {static_cast<void*>(&args)...};
  if constexpr (Kind != launch_kind::in_order) {
    cudaLaunchAttribute attribute{};
    if constexpr (Kind == launch_kind::overlapping) {
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
    config.numAttrs         = 1;
    return cuda_status(
      cudaLaunchKernelExC(&config, reinterpret_cast<void const*>(kernel), pointers));
  } else {
    return cuda_status(cudaLaunchKernel(kernel,
                                        dim3(blocks),
                                        dim3(static_cast<unsigned>(threads)),
                                        pointers,
                                        static_cast<std::size_t>(shared),
                                        stream));
  }
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

}  // namespace detail

template <tuning_holder... Of>
template <detail::launch_kind Kind, class... Parameters, class... Args>
status basic_cuda_executor<Of...>::launch(void (*kernel)(Parameters...),
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

template <tuning_holder... Of>
template <class... Parameters, class... Args>
status basic_cuda_executor<Of...>::launch_together(void (*kernel)(Parameters...),
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

template <tuning_holder... Of>
template <class Kernel, class Codec, class Element>
status basic_cuda_executor<Of...>::run(Kernel const& kernel,
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
    return launch<detail::own_launch_kind<Kernel, Of...>>(
      function, blocks, threads, shared, args, kernel);
  }
}

template <tuning_holder... Of>
template <class Kernel, class Codec, class Element>
status basic_cuda_executor<Of...>::run_together(
  Kernel const& kernel, std::uint64_t most, detail::exchange_args<Codec, Element> const& args) const
{
  return launch_together(detail::exchange_kernel<Kernel, Codec, Element, Of...>,
                         most,
                         detail::threads_of<Kernel, Codec, Of...>,
                         Kernel::template shared<Codec>,
                         args,
                         kernel);
}

template <tuning_holder... Of>
template <class Kernel>
status basic_cuda_executor<Of...>::run_together(Kernel const& kernel, std::uint64_t most) const
{
  return launch_together(detail::block_kernel<Kernel, Of...>,
                         most,
                         detail::block_kernel_threads<Kernel, Of...>,
                         Kernel::shared,
                         kernel);
}

template <tuning_holder... Of>
template <class Kernel>
status basic_cuda_executor<Of...>::run(Kernel const& kernel, std::uint64_t blocks) const
{
  constexpr int threads = detail::block_kernel_threads<Kernel, Of...>;
  auto* const function  = detail::block_kernel<Kernel, Of...>;
  return launch(function, blocks, threads, Kernel::shared, kernel);
}

template <tuning_holder... Of>
template <reduce_op Op>
status basic_cuda_executor<Of...>::reduce(Op const& op,
                                          typename Op::element* to,
                                          typename Op::element const* a,
                                          typename Op::element const* b,
                                          std::size_t count) const
{
  return detail::reduce_on_blocks(*this, op, to, a, b, count);
}

template <tuning_holder... Of>
template <class Item>
status basic_cuda_executor<Of...>::each(Item const& item, std::size_t count) const
{
  return launch(detail::item_kernel<Item, Of...>,
                (count + tuned.cuda.item_threads - 1) / tuned.cuda.item_threads,
                tuned.cuda.item_threads,
                0,
                item,
                count);
}

template <tuning_holder... Of>
template <class T>
status basic_cuda_executor<Of...>::copy(T* to, T const* from, std::size_t count) const
{
  if (count == 0 || loading_kernels::lives()) { return {}; }
  return detail::cuda_status(
    cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToDevice, stream));
}

template <tuning_holder... Of>
template <class T>
status basic_cuda_executor<Of...>::clear(T* to, std::size_t count) const
{
  if (count == 0 || loading_kernels::lives()) { return {}; }
  return detail::cuda_status(cudaMemsetAsync(to, 0, count * sizeof(T), stream));
}

}  // namespace tersum::inline v0
