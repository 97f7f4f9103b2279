// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges over NCCL in pieces: while one piece is added up or recompressed, the next one moves.

#pragma once

#include <tersum/interop/nccl.cuh>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! @brief Scratch memory of `nccl_pieces` for the exchanges of a plan, bytes.
template <class Codec>
[[nodiscard]] constexpr std::size_t scratch_bytes(plan<Codec> const& plan, int pieces) noexcept;

//! @brief A collective for `all_reduce_mean`, with the bits of `reduce_over<Schedule>`.
//!
//! Sums by `direct` or `ring`, those of summed shards too, and the parts of a two-shot codec, move in pieces. What NCCL
//! sums itself, and what is gathered, moves whole. The transport needs a stream of its own beside the executor's. The two
//! meet by events, so an exchange can be captured in a CUDA graph from the executor's stream. The constructor creates the
//! events; keep the object while exchanges are under way. *Errors* are those of `transport_reduce`, but that the two
//! streams must differ.
template <schedule Schedule = schedule::automatic>
class nccl_pieces {
 public:
  static constexpr int most = 16;

  //! @param over     Its stream must not be the executor's.
  //! @param scratch  scratch_bytes(plan, pieces) bytes of device memory, aligned to 16.
  //! @param pieces   1 to 16, or the nearest of these; a piece should be a megabyte or more.
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

  //! Gathers the parts of a round in place, whole.
  //! @{
  template <class Element>
  [[nodiscard]] status operator()(gather_wire<Element> const& round) const
  {
    return gather(round);
  }
  template <class Element, class Parts>
  [[nodiscard]] status operator()(gather_wire_of<Element, Parts> const& round) const
  {
    return gather(round);
  }
  //! @}

  //! Exchanges parts that differ in size, whole.
  template <class Element, class Parts>
  [[nodiscard]] status operator()(shards_wire_of<Element, Parts> const& round) const;

  //! Reduces a round and scatters its parts, which differ in size: each of them in pieces, or, where NCCL reduces, whole.
  template <reduce_op Op, class Parts>
  [[nodiscard]] status operator()(summed_wire_of<Op, Parts> const& round) const;

  //! Exchanges the parts of a two-shot codec, recompresses them and gathers them.
  template <class Element, class Recompress>
  [[nodiscard]] status operator()(scatter_wire<Element> const& scattered,
                                  gather_wire<Element> const& gathered,
                                  part_recompression<Recompress> const& between) const;

 private:
  // Runs the body so that the transport's stream begins after what the executor's stream holds, and so that the
  // executor's stream goes on when the transport's has ended.
  template <class Body>
  [[nodiscard]] status between_streams(Body const& body) const;

  // Calls move(step, piece) on the transport's stream and, after each of the first `worked` steps, work(step, piece) on
  // the executor's. On every rank all pieces have made a step before one makes the next.
  template <class Move, class Work>
  [[nodiscard]] status pipeline(int steps, int worked, Move const& move, Work const& work) const;

  template <class Round>
  [[nodiscard]] status gather(Round const& round) const;
  template <class Round>
  [[nodiscard]] status sum(Round const& round) const;
  [[nodiscard]] static status wait_for(cudaStream_t later, cudaEvent_t event) noexcept;

  [[nodiscard]] static status follow(cudaStream_t later,
                                     cudaStream_t earlier,
                                     cudaEvent_t event) noexcept;

  nccl_transport const* over_;
  cuda_executor exec_;
  std::span<std::byte> scratch_;
  int pieces_;
  cudaError_t error_ = cudaSuccess;
  cudaEvent_t events_[2 * most + 2]{};  // arrived and done of each piece, begin and end
};

}  // namespace tersum::inline v0

#include <tersum/interop/detail/nccl_pieces.ipp>
