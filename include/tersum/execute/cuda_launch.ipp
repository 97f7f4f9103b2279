// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Launches on a CUDA device: definitions of cuda_executor.cuh.

namespace tersum::inline v0 {

namespace detail {

[[nodiscard]] inline status cuda_status(cudaError_t error) noexcept
{
  if (error == cudaSuccess) { return {}; }
  return {
    error_code::execution_failed, "the CUDA runtime refused a launch", static_cast<int>(error)};
}

//! @brief Launches a kernel, and returns the error of this launch.
//!
//! What others left behind in the runtime is not read: after a caller asked whether a stream is ready, the last error may be
//! that it was not.
template <class... Parameters>
[[nodiscard]] status launch_kernel(void (*kernel)(Parameters...),
                                   unsigned blocks,
                                   int threads,
                                   int shared,
                                   cudaStream_t stream,
                                   std::type_identity_t<Parameters>... args)
{
  void* pointers[] = {static_cast<void*>(&args)...};
  return cuda_status(cudaLaunchKernel(kernel,
                                      dim3(blocks),
                                      dim3(static_cast<unsigned>(threads)),
                                      pointers,
                                      static_cast<std::size_t>(shared),
                                      stream));
}

}  // namespace detail

template <class... Parameters, class... Args>
status cuda_executor::launch(void (*kernel)(Parameters...),
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
  return detail::launch_kernel(
    kernel, static_cast<unsigned>(blocks), threads, shared, stream, args...);
}

template <class Codec, class Element, class Kernel>
status cuda_executor::launch_chunks(plan<Codec> const& plan,
                                    detail::exchange_args<Codec, Element> const& args,
                                    Kernel* regular,
                                    Kernel* edge,
                                    detail::chunk_grid grid) const
{
  auto const [chunks_a_block, threads, shared] = grid;
  auto const blocks                            = [&](std::uint64_t chunks) {
    return (chunks + chunks_a_block - 1) / chunks_a_block;
  };
  if (Codec::rotates_all) {
    return launch(regular, blocks(plan.chunks()), threads, shared, args, std::uint64_t{0});
  }
  // Of one vector only the last chunk can be short; tensors of a bucket may end and begin anywhere.
  bool const aligned        = reinterpret_cast<std::uintptr_t>(args.gradient) % 16 == 0;
  bool const one            = plan.gradient().tensors.empty();
  std::uint64_t const whole = plan.coordinates() / Codec::chunk_size;
  if (!one || aligned) {
    if (auto const s = launch(
          regular, blocks(one ? whole : plan.chunks()), threads, shared, args, std::uint64_t{0});
        !s.ok()) {
      return s;
    }
  }
  std::uint64_t const first = one && aligned ? whole - whole % chunks_a_block : 0;
  return launch(edge, blocks(plan.chunks() - first), threads, shared, args, first);
}

template <class Codec, class Element>
status cuda_executor::launch_norms(plan<Codec> const& plan,
                                   detail::exchange_args<Codec, Element> const& args) const
{
  return launch_chunks(plan,
                       args,
                       detail::norms_kernel<false, Codec, Element>,
                       detail::norms_kernel<true, Codec, Element>,
                       detail::norms_grid<Codec, Element>);
}

}  // namespace tersum::inline v0
