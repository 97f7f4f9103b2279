// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! NCCL as a transport. Device memory; link with NCCL. Run by the tests on a simulated device, over a stand-in for NCCL.

#pragma once

#include <tersum/execute/cuda_executor.cuh>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/status.hpp>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

namespace tersum::inline v0 {

//! @brief NCCL's own type for an element, or ncclNumTypes: NCCL has no integers of 16 bits.
template <class Element>
inline constexpr ncclDataType_t nccl_type = std::same_as<Element, float>           ? ncclFloat32
                                            : std::same_as<Element, half>          ? ncclFloat16
                                            : std::same_as<Element, bfloat16>      ? ncclBfloat16
                                            : std::same_as<Element, std::int8_t>   ? ncclInt8
                                            : std::same_as<Element, std::uint8_t>  ? ncclUint8
                                            : std::same_as<Element, std::int32_t>  ? ncclInt32
                                            : std::same_as<Element, std::uint32_t> ? ncclUint32
                                            : std::same_as<Element, std::uint64_t> ? ncclUint64
                                                                                   : ncclNumTypes;

//! @brief Whether NCCL has an operation built in. Its integers would wrap on overflow; plans rule overflow out.
template <class Op>
inline constexpr bool nccl_knows = nccl_type<typename Op::element> != ncclNumTypes&& Op::native;

//! @brief What NCCL calls an operation that it knows.
template <class Op>
requires nccl_knows<Op>
inline constexpr ncclRedOp_t nccl_operation_of = Op::maximum ? ncclMax : ncclSum;

//! @brief A communicator of NCCL and a stream, both the caller's. The executor must have the same stream.
//!
//! Collectives are enqueued and can be captured in a CUDA graph. `wait` blocks, with a time limit; `exchange_word` uses
//! it. What NCCL cannot add, such as saturating lanes, moves as bytes and is added by the executor's kernels. With
//! `ncclConfig_t::blocking = 0` the time limit also covers the making of connections. The members are those that `transport` asks
//! for, and what aborts a communicator whose rank is gone. NCCL's error is in `status::native`.
//!
//! @par Example
//! @snippet examples/transports/nccl_all_reduce.cu transport
class nccl_transport {
 public:
  //! Waits for the communicator to be ready. Allocates 16 bytes of device memory on the stream, once.
  nccl_transport(ncclComm_t comm,
                 cudaStream_t stream,
                 std::chrono::milliseconds timeout = std::chrono::seconds(30)) noexcept;
  nccl_transport(nccl_transport const&)            = delete;
  nccl_transport& operator=(nccl_transport const&) = delete;
  //! Waits for nothing: its memory is freed in the order of the stream, which must still be there. (cudaFree would wait for
  //! the device, and so for ever where a rank is dead and the communicator is not aborted.)
  ~nccl_transport();

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] status check() const noexcept { return ready_.ok() ? refused_ : ready_; }
  void refuse(status const& why) const noexcept { refused_ = why; }

  //! The stream on which collectives are enqueued.
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }

  //! @brief Whether the executor's stream is the transport's: on another one neither would wait for the other.
  [[nodiscard]] status check_stream(cudaStream_t executors) const noexcept;

  //! Whether the communicator was aborted, because it failed or did not end in time. Then the caller must not destroy it.
  [[nodiscard]] bool aborted() const noexcept { return aborted_; }

  //! @brief Blocks until a stream (the transport's, or one that waits for it) has done all that was enqueued.
  //!
  //! If the communicator fails, or the timeout passes because a rank is gone, the communicator is aborted. That frees
  //! the stream; what it wrote is then worthless. Not for capture.
  [[nodiscard]] status wait() const noexcept { return wait(stream_); }
  [[nodiscard]] status wait(cudaStream_t stream) const noexcept;

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const noexcept;

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const noexcept;

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const noexcept;

  //! @brief To every other rank r what lies in sent(r), and from it what fills received(r): spans of device memory.
  template <class Sent, class Received>
  [[nodiscard]] status exchange(Sent const& sent, Received const& received) const noexcept;

  //! NCCL's own operations.
  template <reduce_op Op>
  requires nccl_knows<Op>
  [[nodiscard]] status all_reduce(wire<Op> const& round) const noexcept;

  //! @brief NCCL's own reduce-scatter where all parts have one size, else a group with a reduction for each rank that has a part.
  template <reduce_op Op, class Parts>
  requires nccl_knows<Op>
  [[nodiscard]] status reduce_scatter(summed_wire_of<Op, Parts> const& round) const noexcept;

 private:
  class group;

  // The status of a call to NCCL. A communicator that does not block answers later: waits for it, no longer than the timeout.
  [[nodiscard]] status await_result(ncclResult_t result) const noexcept;

  [[nodiscard]] status abort(status const& why) const noexcept;

  [[nodiscard]] static status late() noexcept;

  [[nodiscard]] static status copied(cudaError_t error) noexcept;

  ncclComm_t comm_;
  cudaStream_t stream_;
  std::chrono::milliseconds timeout_;
  std::uint64_t* words_ = nullptr;
  int rank_             = 0;
  int size_             = 1;
  mutable status ready_, refused_;
  mutable bool aborted_ = false;
};

static_assert(transport<nccl_transport>, "tersum: must model tersum::transport");

}  // namespace tersum::inline v0

#include <tersum/interop/detail/nccl.ipp>
