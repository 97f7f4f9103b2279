// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two shots over NCCL in pieces: while one piece is added up, the next one moves.

#pragma once

#include <tersum/interop/nccl.cuh>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief Scratch memory of `nccl_pieces` for the exchanges of a plan, bytes.
template <class Codec>
[[nodiscard]] constexpr std::size_t scratch_bytes(plan<Codec> const& plan, int pieces) noexcept;

//! @brief A collective for `all_reduce_mean`, with the bits of `schedule::direct`.
//!
//! The transport has a stream of its own beside the executor's: they meet by events, so that an exchange can be captured
//! in a CUDA graph from the executor's stream. Rounds that NCCL adds by itself go in the wire. Making it creates
//! events; keep it while exchanges are under way.
class nccl_pieces {
 public:
  static constexpr int most = 16;

  //! @param over     Its stream must be another one than the executor's.
  //! @param scratch  scratch_bytes(plan, pieces) bytes of device memory, aligned to 16.
  //! @param pieces   1 to 16; a piece should be a megabyte or more.
  nccl_pieces(nccl_transport const& over,
              cuda_executor const& exec,
              std::span<std::byte> scratch,
              int pieces) noexcept;
  nccl_pieces(nccl_pieces const&)            = delete;
  nccl_pieces& operator=(nccl_pieces const&) = delete;
  ~nccl_pieces();

  //! Reduces a round in place.
  template <reduce_op Op>
  [[nodiscard]] status operator()(wire<Op> const& round) const;

  //! Gathers a round in place.
  template <class Element>
  [[nodiscard]] status operator()(gather_wire<Element> const& round) const;

  //! Exchanges the parts of a round.
  template <class Element>
  [[nodiscard]] status operator()(scatter_wire<Element> const& round) const;

 private:
  // The transport's stream begins after what the executor's holds, and the executor's goes on after the transport's.
  template <class Body>
  [[nodiscard]] status between_streams(Body const& body) const;

  template <class Op>
  [[nodiscard]] status in_pieces(wire<Op> const& round) const;

  [[nodiscard]] rank_blocks blocks_of(rank_blocks const& cut, int piece) const noexcept;

  // All-to-all on the transport's stream, and then the sum on the executor's.
  template <class Op>
  [[nodiscard]] status there(wire<Op> const& round,
                             rank_blocks const& cut,
                             int piece,
                             std::byte* received) const;

  // All-gather on the transport's stream, when the sum is there.
  template <class Op>
  [[nodiscard]] status back(wire<Op> const& round, rank_blocks const& cut, int piece) const;

  [[nodiscard]] static status wait_for(cudaStream_t later, cudaEvent_t event) noexcept;

  [[nodiscard]] static status follow(cudaStream_t later,
                                     cudaStream_t earlier,
                                     cudaEvent_t event) noexcept;

  nccl_transport const* over_;
  cuda_executor exec_;
  std::span<std::byte> scratch_;
  int pieces_;
  cudaError_t error_ = cudaSuccess;
  cudaEvent_t events_[2 * most + 2]{};  // arrived and added of each piece, begin and end
};

}  // namespace tersum::inline v0

#include <tersum/interop/nccl_pieces.ipp>
