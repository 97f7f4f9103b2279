// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! NCCL as a transport. Device memory; link with NCCL. Compiled and linked by the tests, not yet run on a device.

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
#include <thread>

namespace tersum::inline v0 {

//! @brief NCCL's own type for an element, or ncclNumTypes: NCCL has no integers of 16 bits.
template <class Element>
inline constexpr ncclDataType_t nccl_type = std::same_as<Element, float>           ? ncclFloat32
                                            : std::same_as<Element, half>          ? ncclFloat16
                                            : std::same_as<Element, bfloat16>      ? ncclBfloat16
                                            : std::same_as<Element, std::int8_t>   ? ncclInt8
                                            : std::same_as<Element, std::int32_t>  ? ncclInt32
                                            : std::same_as<Element, std::uint32_t> ? ncclUint32
                                            : std::same_as<Element, std::uint64_t> ? ncclUint64
                                                                                   : ncclNumTypes;

//! @brief Whether NCCL has an operation built in. Integers wrap there as here, which a plan rules out.
template <class Op>
inline constexpr bool nccl_knows = nccl_type<typename Op::element> != ncclNumTypes &&
                                   (std::same_as<Op, native_sum<typename Op::element>> ||
                                    std::same_as<Op, native_max<typename Op::element>>);

//! @brief A communicator of NCCL and a stream, both the caller's; the executor must have the same stream.
//!
//! Collectives are enqueued and can be captured in a CUDA graph; `wait` blocks, with a time limit, and `exchange_word`
//! uses it. What NCCL cannot add, such as saturating lanes, moves as bytes and is added by the executor's kernels. With
//! `ncclConfig_t::blocking = 0` not even the making of connections outlasts the timeout. Errors are in status::native.
class nccl_transport {
 public:
  //! Waits for the communicator to be ready. Allocates 16 bytes of device memory, once.
  nccl_transport(ncclComm_t comm,
                 cudaStream_t stream,
                 std::chrono::milliseconds timeout = std::chrono::seconds(30)) noexcept
    : comm_(comm), stream_(stream), timeout_(timeout)
  {
    ready_ = settle(ncclInProgress);
    if (ready_.ok()) { ready_ = settle(ncclCommUserRank(comm_, &rank_)); }
    if (ready_.ok()) { ready_ = settle(ncclCommCount(comm_, &size_)); }
    if (ready_.ok() && cudaMalloc(&words_, 2 * sizeof *words_) != cudaSuccess) {
      ready_ = {error_code::execution_failed, "no device memory for two words"};
    }
  }
  nccl_transport(nccl_transport const&)            = delete;
  nccl_transport& operator=(nccl_transport const&) = delete;
  ~nccl_transport() { cudaFree(words_); }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] status check() const noexcept { return ready_; }

  //! What collectives are enqueued on.
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }

  //! Whether `wait` gave the communicator up: then the caller does not destroy it.
  [[nodiscard]] bool aborted() const noexcept { return aborted_; }

  //! @brief Blocks until a stream, the transport's or one that waits for it, has done all that was enqueued.
  //!
  //! On an error of the communicator, or when the timeout passes because a rank is gone, the communicator is aborted,
  //! which frees the stream; what the stream wrote is then worthless. Not for capture.
  [[nodiscard]] status wait() const noexcept { return wait(stream_); }
  [[nodiscard]] status wait(cudaStream_t stream) const noexcept
  {
    auto const end = std::chrono::steady_clock::now() + timeout_;
    for (;;) {
      cudaError_t const done = cudaStreamQuery(stream);
      if (done == cudaSuccess) { return {}; }
      if (done != cudaErrorNotReady) {
        return abort({error_code::execution_failed,
                      "the stream failed: native is the error of the CUDA runtime",
                      static_cast<int>(done)});
      }
      ncclResult_t state        = ncclSuccess;
      ncclResult_t const answer = ncclCommGetAsyncError(comm_, &state);
      if (answer != ncclSuccess || (state != ncclSuccess && state != ncclInProgress)) {
        return abort({error_code::transport_failed,
                      "NCCL reports an error of the communicator",
                      static_cast<int>(answer != ncclSuccess ? answer : state)});
      }
      if (std::chrono::steady_clock::now() > end) { return abort(late()); }
      std::this_thread::yield();
    }
  }

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const noexcept
  {
    constexpr std::size_t bytes = sizeof value;
    auto* const words           = reinterpret_cast<std::byte*>(words_);
    if (cudaError_t const e = cudaMemcpyAsync(words, &value, bytes, cudaMemcpyDefault, stream_);
        e != cudaSuccess) {
      return copied(e);
    }
    if (status const s = send_receive(to, words, bytes, from, words + bytes, bytes); !s.ok()) {
      return s;
    }
    // What a rank that never came would have sent must not block in a copy to pageable memory.
    if (status const s = wait(); !s.ok()) { return s; }
    return copied(cudaMemcpyAsync(&received, words + bytes, bytes, cudaMemcpyDefault, stream_) ==
                      cudaSuccess
                    ? cudaStreamSynchronize(stream_)
                    : cudaGetLastError());
  }

  [[nodiscard]] status send_receive(int to,
                                    std::byte const* sent,
                                    std::size_t sent_bytes,
                                    int from,
                                    std::byte* received,
                                    std::size_t received_bytes) const noexcept
  {
    group together;
    if (sent_bytes > 0) { together.add(ncclSend(sent, sent_bytes, ncclUint8, to, comm_, stream_)); }
    if (received_bytes > 0) {
      together.add(ncclRecv(received, received_bytes, ncclUint8, from, comm_, stream_));
    }
    return settle(together.end());
  }

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const noexcept
  {
    std::size_t const mine = blocks.bytes(rank_);
    std::byte* const own   = received + static_cast<std::size_t>(rank_) * mine;
    if (mine > 0) {
      if (cudaError_t const e = cudaMemcpyAsync(
            own, data + blocks.begin_byte(rank_), mine, cudaMemcpyDeviceToDevice, stream_);
          e != cudaSuccess) {
        return copied(e);
      }
    }
    group together;
    for (int k = 0; k < size_; ++k) {
      if (k == rank_) { continue; }
      if (std::size_t const bytes = blocks.bytes(k); bytes > 0) {
        together.add(ncclSend(data + blocks.begin_byte(k), bytes, ncclUint8, k, comm_, stream_));
      }
      if (mine > 0) {
        together.add(ncclRecv(
          received + static_cast<std::size_t>(k) * mine, mine, ncclUint8, k, comm_, stream_));
      }
    }
    return settle(together.end());
  }

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const noexcept
  {
    std::size_t const mine     = blocks.bytes(rank_);
    std::byte const* const own = data + blocks.begin_byte(rank_);
    if (blocks.count % static_cast<std::size_t>(size_) == 0) {
      return settle(ncclAllGather(own, data, mine, ncclUint8, comm_, stream_));
    }
    group together;
    for (int k = 0; k < size_; ++k) {
      if (k == rank_) { continue; }
      if (mine > 0) { together.add(ncclSend(own, mine, ncclUint8, k, comm_, stream_)); }
      if (std::size_t const bytes = blocks.bytes(k); bytes > 0) {
        together.add(ncclRecv(data + blocks.begin_byte(k), bytes, ncclUint8, k, comm_, stream_));
      }
    }
    return settle(together.end());
  }

  //! NCCL's own operations.
  template <reduce_op Op>
  requires nccl_knows<Op>
  [[nodiscard]] status all_reduce(wire<Op> const& round) const noexcept
  {
    using element                   = typename Op::element;
    constexpr ncclRedOp_t operation = std::same_as<Op, native_max<element>> ? ncclMax : ncclSum;
    return settle(ncclAllReduce(
      round.data, round.data, round.count, nccl_type<element>, operation, comm_, stream_));
  }

 private:
  // Calls that NCCL makes progress on together; keeps the first error.
  class group {
   public:
    group() noexcept { add(ncclGroupStart()); }
    void add(ncclResult_t result) noexcept
    {
      if (first_ == ncclSuccess || first_ == ncclInProgress) { first_ = result; }
    }
    [[nodiscard]] ncclResult_t end() noexcept
    {
      add(ncclGroupEnd());
      return first_;
    }

   private:
    ncclResult_t first_ = ncclSuccess;
  };

  // A communicator that does not block answers later.
  [[nodiscard]] status settle(ncclResult_t result) const noexcept
  {
    auto const end = std::chrono::steady_clock::now() + timeout_;
    while (result == ncclInProgress) {
      if (ncclResult_t const e = ncclCommGetAsyncError(comm_, &result); e != ncclSuccess) {
        result = e;
      } else if (result == ncclInProgress && std::chrono::steady_clock::now() > end) {
        return abort(late());
      }
    }
    if (result == ncclSuccess) { return {}; }
    return {error_code::transport_failed, "NCCL returned an error", static_cast<int>(result)};
  }

  [[nodiscard]] status abort(status const& why) const noexcept
  {
    if (!aborted_) { ncclCommAbort(comm_); }
    aborted_ = true;
    ready_   = {error_code::transport_failed,
                "the communicator of NCCL was aborted: make a new one, and a new transport",
                why.native};
    return why;
  }

  [[nodiscard]] static status late() noexcept
  {
    return {error_code::transport_failed,
            "NCCL did not end within the timeout: a rank is gone or late"};
  }

  [[nodiscard]] static status copied(cudaError_t error) noexcept
  {
    if (error == cudaSuccess) { return {}; }
    return {error_code::execution_failed, "a copy on the stream failed", static_cast<int>(error)};
  }

  ncclComm_t comm_;
  cudaStream_t stream_;
  std::chrono::milliseconds timeout_;
  std::uint64_t* words_ = nullptr;
  int rank_             = 0;
  int size_             = 1;
  mutable status ready_;
  mutable bool aborted_ = false;
};

static_assert(transport<nccl_transport>, "tersum: must model tersum::transport");

}  // namespace tersum::inline v0
