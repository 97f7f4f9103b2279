// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Never run on a device, only in the simulator: an exchange in one kernel, over memory that NCCL maps into all ranks. It uses NCCL's
//! device interface, of version 2.28 or later.

#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <tersum_nccl_device/nccl_symmetric.cuh>

#if NCCL_VERSION_CODE >= 22800

#include <nccl_device.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tersum_nccl_device/detail/nccl_fused_kernel.cuh>

namespace tersum::inline v0 {

//! @brief Bytes of symmetric memory that `nccl_fused` needs for the exchanges of a plan: a workspace, and flags. Take the most of
//! several plans.
//! @param blocks  As `nccl_fused` gets it.
template <class Codec>
[[nodiscard]] constexpr std::size_t fused_memory_bytes(plan<Codec> const& plan,
                                                       int blocks = 512) noexcept;

//! @brief A collective for `all_reduce_mean` among ranks whose memory reaches one another: one kernel encodes the gradient, adds up
//! codes and decodes the mean, tile by tile, while others of its tiles are on their way.
//!
//! What the ranks agree on before, and coordinates that bypass the codec, are rounds of `nccl_symmetric`. So `rotated_sat4` takes
//! four launches: norms, their sum, this kernel, and the end of the exchange; `two_shot_4` takes two. Means, states
//! and residuals have the bits of `nccl_symmetric` and of `schedule::direct`.
//!
//! It takes codecs whose codes are summed, under `fixed_chunks`, with feedback or without, and `two_shot` under
//! `fixed_chunks` without feedback, none in a metric that the library keeps; others are an error of the compiler. Gradients are float, half or bfloat16.
//!
//!     tersum::nccl_fused const fused{communicator, exec, memory};   // memory: fused_memory_bytes(plan) bytes of ncclMemAlloc
//!     status = all_reduce_mean(exec, plan, gradient, state, fused.workspace(), std::cref(fused));
//!
//! Calls can be captured in a CUDA graph. When the kernel of a rank has ended, no other rank touches its memory. A kernel waits for
//! all ranks, without a limit of time, and no abort of the communicator ends it: a rank that has to be given up is given up with
//! its process. *Errors*: those of `check`; a plan of other ranks; a workspace that is not this one's; what the CUDA runtime refuses.
class nccl_fused {
 public:
  //! @brief Collective: every rank makes the object, and destroys it before the communicator. Waits for the executor's stream.
  //! @param memory  From ncclMemAlloc, of one size on all ranks.
  //! @param blocks  Thread blocks of a launch at most, as many as ranks or more, and the same on all ranks. They wait for one
  //!                another, so that the device must hold all of them together: 512 blocks of 128 threads take 4 on each of 128
  //!                multiprocessors. Two shots take three quarters of the blocks, codecs with feedback half. Ranks that share a device share its room.
  nccl_fused(ncclComm_t comm,
             cuda_executor const& exec,
             std::span<std::byte> memory,
             int blocks = 512) noexcept;
  nccl_fused(nccl_fused const&)            = delete;
  nccl_fused& operator=(nccl_fused const&) = delete;

  //! As of `nccl_symmetric`.
  void abandon() noexcept { rounds_.abandon(); }

  //! Whether all ranks reach one another, and memory and blocks are enough.
  [[nodiscard]] status check() const noexcept;

  //! The part of the memory that exchanges take as their workspace; aligned to 16.
  [[nodiscard]] std::span<std::byte> workspace() const noexcept { return memory_.first(flags_at_); }

  //! Reduces a round in place, in a launch of its own.
  template <reduce_op Op>
  [[nodiscard]] status operator()(wire<Op> const& round) const
  {
    return rounds_(round);
  }

  //! @name Rounds of shards and of values
  //! They do not compile: `nccl_symmetric` takes them, in the same memory.
  //! @{
  template <class Element, class Parts>
  [[nodiscard]] status operator()(shards_wire_of<Element, Parts> const&) const
  {
    return refuse<Parts>();
  }
  template <reduce_op Op, class Parts>
  [[nodiscard]] status operator()(summed_wire_of<Op, Parts> const&) const
  {
    return refuse<Parts>();
  }
  template <class Element, class Parts>
  [[nodiscard]] status operator()(gather_wire_of<Element, Parts> const&) const
  {
    return refuse<Parts>();
  }
  //! @}

  //! @name For all_reduce_mean
  //! @{
  //! Whether `exchange` does this stage or round.
  template <class Codec, class Entry>
  static constexpr bool does =
    std::same_as<Entry, stage::encode> || std::same_as<Entry, rounds::reduce_payload> ||
    std::same_as<Entry, rounds::scatter_parts> || std::same_as<Entry, stage::recompress> ||
    std::same_as<Entry, rounds::gather_parts> || std::same_as<Entry, stage::decode> ||
    (std::same_as<Entry, stage::derive_steps> && detail::derives_in_encode<Codec>);

  //! From gradient to mean. The kernel's arguments have the workspace in `workspace()`, at the same place on all ranks.
  template <class Flags = detail::fused_flags, class Codec, class Element>
  [[nodiscard]] status exchange(plan<Codec> const& plan,
                                detail::exchange_args<Codec, Element> const& args) const;
  //! @}

 private:
  template <class Parts>
  [[nodiscard]] static status refuse() noexcept
  {
    static_assert(std::same_as<Parts, void>,
                  "tersum: nccl_fused takes all_reduce_mean only: give reduce_scatter_mean and "
                  "all_gather_values a nccl_symmetric");
    return {};
  }

  static std::size_t flags_at(ncclComm_t comm, std::span<std::byte> memory, int blocks) noexcept;

  std::span<std::byte> memory_;
  int blocks_;
  std::size_t flags_at_;  // where flags begin
  status ready_;
  nccl_symmetric rounds_;
};

}  // namespace tersum::inline v0

#include <tersum_nccl_device/detail/nccl_fused.ipp>

#endif  // NCCL_VERSION_CODE >= 22800
