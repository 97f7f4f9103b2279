// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two shots in one kernel, over memory that NCCL maps into all ranks: NCCL's device interface, from version 2.28 on.
//! Compiled and linked by the tests, not yet run on a device.

#pragma once

#include <tersum/collective/rank_blocks.hpp>
#include <tersum/execute/cuda_executor.cuh>
#include <tersum/interop/nccl.cuh>
#include <tersum/reduce/block_reduce.hpp>

#include <cuda_runtime_api.h>
#include <nccl.h>

#if NCCL_VERSION_CODE >= 22800

#include <nccl_device.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

namespace detail {

inline constexpr int symmetric_threads = 512;  //!< Threads of a block.

//! @brief The reduction of elements `begin` to `end`, which this rank owns: read from all ranks, written to all ranks.
//! Neighbouring elements are taken as vectors of 16 bytes where `Vectors`.
template <bool Vectors, class Op>
__device__ void reduce_symmetric(ncclDevComm const& comm,
                                 ncclWindow_t window,
                                 std::size_t offset,
                                 std::size_t begin,
                                 std::size_t end,
                                 Op const& op)
{
  using element          = typename Op::element;
  constexpr int together = Vectors ? element_vector<element>::count : 1;
  struct alignas(together * sizeof(element)) vector {
    element value[together];
  };
  std::size_t const step = static_cast<std::size_t>(gridDim.x) * blockDim.x * together;
  std::size_t at =
    begin + (static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * together;
  for (; at < end; at += step) {
    std::size_t const byte = offset + at * sizeof(element);
    vector sum             = *static_cast<vector const*>(ncclGetLsaPointer(window, byte, 0));
    for (int rank = 1; rank < comm.lsaSize; ++rank) {
      vector const other = *static_cast<vector const*>(ncclGetLsaPointer(window, byte, rank));
      TERSUM_UNROLL
      for (int k = 0; k < together; ++k) {
        if constexpr (has_combine_at<Op>) {
          sum.value[k] = op(sum.value[k], other.value[k], at + static_cast<unsigned>(k));
        } else {
          sum.value[k] = op(sum.value[k], other.value[k]);
        }
      }
    }
    for (int rank = 0; rank < comm.lsaSize; ++rank) {
      *static_cast<vector*>(ncclGetLsaPointer(window, byte, rank)) = sum;
    }
  }
}

//! @brief The whole all-reduce of `count` elements at a byte of the window. No element has two writers.
template <class Op>
__global__ void __launch_bounds__(symmetric_threads) symmetric_kernel(ncclDevComm comm,
                                                                      ncclWindow_t window,
                                                                      std::size_t offset,
                                                                      std::size_t count,
                                                                      std::size_t begin,
                                                                      std::size_t end,
                                                                      Op op)
{
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);  // all ranks have what they bring
  using element                  = typename Op::element;
  constexpr std::size_t together = element_vector<element>::count;
  if (offset % 16 == 0) {
    reduce_symmetric<true>(comm, window, offset, begin * together, end * together, op);
    if (comm.lsaRank == comm.lsaSize - 1) {
      reduce_symmetric<false>(comm, window, offset, count / together * together, count, op);
    }
  } else {
    bool const last = comm.lsaRank == comm.lsaSize - 1;
    reduce_symmetric<false>(
      comm, window, offset, begin * together, last ? count : end * together, op);
  }
  everyone.sync(cta, cuda::memory_order_acq_rel);  // all ranks have what they get
}

//! @brief This rank's part, written to all other ranks.
template <class Element>
__global__ void __launch_bounds__(symmetric_threads) symmetric_gather_kernel(ncclDevComm comm,
                                                                             ncclWindow_t window,
                                                                             std::size_t offset,
                                                                             std::size_t count)
{
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);
  std::size_t const mine =
    offset + static_cast<std::size_t>(comm.lsaRank) * count * sizeof(Element);
  std::size_t const step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::size_t at         = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; at < count; at += step) {
    std::size_t const byte = mine + at * sizeof(Element);
    Element const value =
      *static_cast<Element const*>(ncclGetLsaPointer(window, byte, comm.lsaRank));
    for (int rank = 0; rank < comm.lsaSize; ++rank) {
      if (rank == comm.lsaRank) { continue; }
      *static_cast<Element*>(ncclGetLsaPointer(window, byte, rank)) = value;
    }
  }
  everyone.sync(cta, cuda::memory_order_acq_rel);
}

//! @brief Every rank's part for this one, read from it; `received` is this rank's alone.
template <class Element>
__global__ void __launch_bounds__(symmetric_threads) symmetric_scatter_kernel(
  ncclDevComm comm, ncclWindow_t window, std::size_t offset, std::size_t count, Element* received)
{
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);
  std::size_t const mine =
    offset + static_cast<std::size_t>(comm.lsaRank) * count * sizeof(Element);
  std::size_t const step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::size_t at         = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; at < count; at += step) {
    for (int rank = 0; rank < comm.lsaSize; ++rank) {
      received[static_cast<std::size_t>(rank) * count + at] =
        *static_cast<Element const*>(ncclGetLsaPointer(window, mine + at * sizeof(Element), rank));
    }
  }
  everyone.sync(cta, cuda::memory_order_acq_rel);  // nobody overwrites what another still reads
}

}  // namespace detail

//! @brief A collective for `all_reduce_mean` among ranks whose memory reaches one another: one launch a round.
//!
//! Its bits are those of `schedule::two_shot`, for native operations too. The workspace of the exchange must lie in `memory`, at
//! the same place on every rank. Launches can be captured in a CUDA graph; they wait for all ranks and have no time limit
//! of their own: `nccl_transport::wait` has one.
class nccl_symmetric {
 public:
  //! @brief Collective: every rank makes it, and ends it before the communicator.
  //! @param memory  From ncclMemAlloc, of one size on all ranks.
  //! @param blocks  Thread blocks of a launch.
  nccl_symmetric(ncclComm_t comm,
                 cuda_executor const& exec,
                 std::span<std::byte> memory,
                 int blocks = 32) noexcept
    : comm_(comm), exec_(exec), memory_(memory), blocks_(blocks)
  {
    error_ = ncclCommWindowRegister(
      comm_, memory_.data(), memory_.size(), &window_, NCCL_WIN_COLL_SYMMETRIC);
    if (error_ != ncclSuccess) { return; }
#if defined(NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER)
    ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
    ncclDevCommRequirements requirements{};
#endif
    requirements.lsaBarrierCount = blocks_;
    error_                       = ncclDevCommCreate(comm_, &requirements, &device_);
    made_                        = error_ == ncclSuccess;
  }
  nccl_symmetric(nccl_symmetric const&)            = delete;
  nccl_symmetric& operator=(nccl_symmetric const&) = delete;
  ~nccl_symmetric()
  {
    if (made_) { ncclDevCommDestroy(comm_, &device_); }
    if (window_ != nullptr) { ncclCommWindowDeregister(comm_, window_); }
  }

  //! Whether all ranks reach one another.
  [[nodiscard]] status check() const noexcept
  {
    if (error_ != ncclSuccess) {
      return {error_code::transport_failed, "NCCL returned an error", static_cast<int>(error_)};
    }
    if (window_ == nullptr || device_.lsaSize != device_.nRanks) {
      return {error_code::unsupported,
              "not all ranks reach one another's memory: use reduce_over or nccl_pieces"};
    }
    return {};
  }

  //! Reduces a round in place.
  template <reduce_op Op>
  [[nodiscard]] status operator()(wire<Op> const& round) const
  {
    using element = typename Op::element;
    static_assert(!recoding<Op>,
                  "tersum: nccl_symmetric adds elements of up to 16 bytes, which a thread can: use "
                  "reduce_over or nccl_pieces");
    if (status const s = check_place(round.data, round.bytes()); !s.ok()) { return s; }
    rank_blocks const vectors{.count         = round.count / detail::element_vector<element>::count,
                              .element_bytes = 16,
                              .ranks         = device_.nRanks};
    detail::symmetric_kernel<Op>
      <<<static_cast<unsigned>(blocks_), detail::symmetric_threads, 0, exec_.stream>>>(
        device_,
        window_,
        place(round.data),
        round.count,
        vectors.begin(device_.rank),
        vectors.begin(device_.rank + 1),
        round.op);
    return detail::cuda_status(cudaGetLastError());
  }

  //! Gathers a round in place.
  template <class Element>
  [[nodiscard]] status operator()(gather_wire<Element> const& round) const
  {
    std::size_t const all = round.bytes() * static_cast<std::size_t>(device_.nRanks);
    if (status const s = check_place(round.data, all); !s.ok()) { return s; }
    detail::symmetric_gather_kernel<Element>
      <<<static_cast<unsigned>(blocks_), detail::symmetric_threads, 0, exec_.stream>>>(
        device_, window_, place(round.data), round.count);
    return detail::cuda_status(cudaGetLastError());
  }

  //! Exchanges the parts of a round.
  template <class Element>
  [[nodiscard]] status operator()(scatter_wire<Element> const& round) const
  {
    std::size_t const all = round.bytes() * static_cast<std::size_t>(device_.nRanks);
    if (status const s = check_place(round.sent, all); !s.ok()) { return s; }
    detail::symmetric_scatter_kernel<Element>
      <<<static_cast<unsigned>(blocks_), detail::symmetric_threads, 0, exec_.stream>>>(
        device_, window_, place(round.sent), round.count, round.received);
    return detail::cuda_status(cudaGetLastError());
  }

 private:
  [[nodiscard]] std::size_t place(void const* data) const noexcept
  {
    return static_cast<std::size_t>(static_cast<std::byte const*>(data) - memory_.data());
  }

  [[nodiscard]] status check_place(void const* data, std::size_t bytes) const noexcept
  {
    if (status const s = check(); !s.ok()) { return s; }
    auto const* const at = static_cast<std::byte const*>(data);
    if (at < memory_.data() || at + bytes > memory_.data() + memory_.size()) {
      return {error_code::invalid_argument,
              "workspace does not lie in the memory that nccl_symmetric registered"};
    }
    return {};
  }

  ncclComm_t comm_;
  cuda_executor exec_;
  std::span<std::byte> memory_;
  int blocks_;
  ncclWindow_t window_ = nullptr;
  ncclDevComm device_{};
  ncclResult_t error_ = ncclSuccess;
  bool made_          = false;
};

}  // namespace tersum::inline v0

#endif  // NCCL_VERSION_CODE >= 22800
