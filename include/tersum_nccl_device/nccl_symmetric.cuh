// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Run in the simulator only, not yet on a device: two shots in one kernel, over memory that NCCL maps into all ranks. It uses
//! NCCL's device interface, of version 2.28 or later.

#pragma once

#include <tersum/exchange/rank_blocks.hpp>
#include <tersum/execute/cuda_executor.cuh>
#include <tersum/interop/nccl.cuh>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <tersum_nccl_device/detail/nccl_symmetric_kernels.cuh>

#if NCCL_VERSION_CODE >= 22800

#include <nccl_device.h>

#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! @brief A collective for `all_reduce_mean`, `reduce_scatter_mean` and `all_gather_values` among ranks whose memory reaches one
//! another: one launch per round.
//!
//! It gives the bits of `schedule::direct`, for native operations too. The workspace of the exchange must lie in
//! `memory`, at the same place on every rank. (Where shards are of unlike sizes so are workspaces: make room for the largest.)
//! Launches can be captured in a CUDA graph. They wait for all ranks, without a time limit: use that of `nccl_transport::wait`.
//! *Errors*: those of `check`; a round of other ranks, or whose arrays do not lie in the memory; what the CUDA runtime refuses.
class nccl_symmetric {
 public:
  //! @brief Collective: every rank makes the object, and destroys it before the communicator.
  //! @param memory  From ncclMemAlloc, of one size on all ranks.
  //! @param blocks  Thread blocks of a launch.
  nccl_symmetric(ncclComm_t comm,
                 cuda_executor const& exec,
                 std::span<std::byte> memory,
                 int blocks = 32) noexcept;
  nccl_symmetric(nccl_symmetric const&)            = delete;
  nccl_symmetric& operator=(nccl_symmetric const&) = delete;
  ~nccl_symmetric();

  //! @brief Call it after the communicator was aborted, as `nccl_transport::wait` does: the destructor then gives
  //! nothing back.
  void abandon() noexcept;

  //! Whether all ranks reach one another.
  [[nodiscard]] status check() const noexcept;

  //! Reduces a round in place.
  template <reduce_op Op>
  [[nodiscard]] status operator()(wire<Op> const& round) const;

  //! Gathers the parts of a round in place.
  template <class Round>
  requires requires(Round const& round) { round.gathered; }
  [[nodiscard]] status operator()(Round const& round) const;

  //! Exchanges the parts of a round.
  template <class Round>
  requires requires(Round const& round) { round.sent; }
  [[nodiscard]] status operator()(Round const& round) const;

  //! Reduces a round and scatters its parts, which differ in size. The sum need not lie in the memory.
  template <reduce_op Op, class Parts>
  [[nodiscard]] status operator()(summed_wire_of<Op, Parts> const& round) const;

 private:
  friend class nccl_fused;

  // Launches a kernel on this rank's part of a round's array.
  template <class Kernel, class Element, class Round, class... Further>
  [[nodiscard]] status launch(Kernel* kernel,
                              Element* data,
                              Round const& round,
                              Further... further) const;

  [[nodiscard]] std::size_t place(void const* data) const noexcept;

  [[nodiscard]] status check_place(void const* data, std::size_t bytes) const noexcept;

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

#include <tersum_nccl_device/detail/nccl_symmetric.ipp>

#endif  // NCCL_VERSION_CODE >= 22800
