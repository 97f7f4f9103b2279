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
#include <tersum/execute/cuda_kernels.cuh>
#include <tersum/execute/executor.hpp>
#include <tersum/status.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief Enqueues on one stream of the current device. Never synchronizes, allocates or reads device memory.
//!
//! All memory given to its calls is device memory. Addresses are checked for alignment, but not for where they lie. A
//! state that `initialize` has not filled for the same plan is undefined behaviour, since the state is not read back
//! for a check. A whole exchange can be captured in a CUDA graph: what changes from step to step lies in the state.
//! There is no default stream: name one. For chunks above 8192 coordinates each call raises a kernel's limit of shared
//! memory, on the host.
struct cuda_executor {
  cudaStream_t stream;

  constexpr cuda_executor(cudaStream_t on) noexcept : stream{on} {}
  cuda_executor(std::nullptr_t) = delete;

  [[nodiscard]] status check() const noexcept { return {}; }

  //! @name Parts of an exchange
  //! Called by `initialize`, `encode`, `advance`, `recompress` and `decode`, which check the arguments first.
  //! @{
  template <class Codec, class Element>
  [[nodiscard]] status initialize(plan<Codec> const& plan,
                                  detail::exchange_args<Codec, Element> const& args,
                                  std::uint64_t seed) const;

  template <class Codec, class Element>
  [[nodiscard]] status encode(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const;

  template <class Codec, class Element>
  [[nodiscard]] status advance(plan<Codec> const& plan,
                               detail::exchange_args<Codec, Element> const& args) const;

  template <class Codec, class Element>
  [[nodiscard]] status recompress(plan<Codec> const& plan,
                                  detail::exchange_args<Codec, Element> const& args) const;

  template <class Codec, class Element>
  [[nodiscard]] status decode(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const;

  template <class Codec, class Element>
  [[nodiscard]] status initialize(plan<Codec> const& plan,
                                  detail::exchange_args<Codec, Element> const& args,
                                  std::uint64_t seed) const requires is_low_rank<Codec>;

  template <class Codec, class Element>
  [[nodiscard]] status encode(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const requires
    is_low_rank<Codec>;

  template <class Codec, class Element>
  [[nodiscard]] status advance(plan<Codec> const& plan,
                               detail::exchange_args<Codec, Element> const& args) const requires
    is_low_rank<Codec>;

  template <class Codec, class Element>
  [[nodiscard]] status decode(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const requires
    is_low_rank<Codec>;

  //! to[i] = op(a[i], b[i]) for `count` elements of device memory; `to` may be `a` or `b`.
  template <reduce_op Op>
  [[nodiscard]] status reduce(Op const& op,
                              typename Op::element* to,
                              typename Op::element const* a,
                              typename Op::element const* b,
                              std::size_t count) const;

  //! item(context, i) for 0 <= i < count, one per thread.
  template <class Item>
  [[nodiscard]] status each(Item const& item, std::size_t count) const;

  //! Copies `count` elements within device memory.
  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const;

  //! Which chunks travel, from the agreed norms: one launch for up to 2^17 chunks, six beyond.
  template <class Codec, class Element>
  [[nodiscard]] status select(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const;
  //! @}

 protected:
  // Launches a kernel of so many blocks; none for 0 blocks.
  template <class... Parameters, class... Args>
  [[nodiscard]] status launch(void (*kernel)(Parameters...),
                              std::uint64_t blocks,
                              int threads,
                              int shared,
                              Args const&... args) const;

  // Launches the kernel for regular chunks, then the one for the others, over the chunks that can be such.
  template <class Codec, class Element, class Kernel>
  [[nodiscard]] status launch_chunks(plan<Codec> const& plan,
                                     detail::exchange_args<Codec, Element> const& args,
                                     Kernel* regular,
                                     Kernel* edge,
                                     detail::chunk_grid grid) const;

  // Launches a kernel of one coordinate a thread.
  template <class Kernel, class... Args>
  [[nodiscard]] status launch_coordinates(Kernel* kernel,
                                          std::uint64_t count,
                                          Args const&... args) const;

  // Launches a kernel of low_rank_launches.hpp.
  template <class Codec, class Element>
  [[nodiscard]] auto low_rank_launch(detail::exchange_args<Codec, Element> const& args) const;

  template <class Codec, class Element>
  [[nodiscard]] status launch_norms(plan<Codec> const& plan,
                                    detail::exchange_args<Codec, Element> const& args) const;

  template <class Codec, class Element>
  [[nodiscard]] status encode_cast(plan<Codec> const& plan,
                                   detail::exchange_args<Codec, Element> const& args) const;

  template <class Codec, class Element>
  [[nodiscard]] status encode_parts(plan<Codec> const& plan,
                                    detail::exchange_args<Codec, Element> const& args) const;

  template <class Codec, class Element>
  [[nodiscard]] status decode_parts(plan<Codec> const& plan,
                                    detail::exchange_args<Codec, Element> const& args) const;

  // Launches a kernel on the chunks that a rank may own.
  template <class Codec, class Element, class Kernel>
  [[nodiscard]] status launch_owned(plan<Codec> const& plan,
                                    detail::exchange_args<Codec, Element> const& args,
                                    Kernel* kernel) const;
};

static_assert(executor<cuda_executor>, "tersum: must model tersum::executor");

}  // namespace tersum::inline v0

#include <tersum/execute/cuda_launch.ipp>
#include <tersum/execute/cuda_low_rank.ipp>
#include <tersum/execute/cuda_reduce.ipp>
#include <tersum/execute/cuda_selection.ipp>
#include <tersum/execute/cuda_stages.ipp>
#include <tersum/execute/cuda_two_shot.ipp>
