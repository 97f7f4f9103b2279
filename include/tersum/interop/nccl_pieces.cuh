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
[[nodiscard]] constexpr std::size_t scratch_bytes(plan<Codec> const& plan, int pieces) noexcept
{
  return scratch_bytes(plan) + static_cast<std::size_t>(pieces) * plan.ranks().size *
                                 detail::maximum(detail::largest_element<Codec>(), std::size_t{16});
}

//! @brief A collective for `all_reduce_mean`, with the bits of `schedule::two_shot`.
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
              int pieces) noexcept
    : over_(&over), exec_(exec), scratch_(scratch), pieces_(std::clamp(pieces, 1, most))
  {
    for (cudaEvent_t& event : events_) {
      if (error_ == cudaSuccess) {
        error_ = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
      }
    }
  }
  nccl_pieces(nccl_pieces const&)            = delete;
  nccl_pieces& operator=(nccl_pieces const&) = delete;
  ~nccl_pieces()
  {
    for (cudaEvent_t const event : events_) {
      if (event != nullptr) { cudaEventDestroy(event); }
    }
  }

  //! Reduces a round in place.
  template <reduce_op Op>
  [[nodiscard]] status operator()(wire<Op> const& round) const
  {
    return between_streams([&]() -> status {
      if constexpr (reduces_in_wire<nccl_transport, Op>) {
        return over_->all_reduce(round);
      } else {
        return in_pieces(round);
      }
    });
  }

  //! Gathers a round in place.
  template <class Element>
  [[nodiscard]] status operator()(gather_wire<Element> const& round) const
  {
    return between_streams([&] { return reduce_over(*over_, exec_)(round); });
  }

 private:
  // The transport's stream begins after what the executor's holds, and the executor's goes on after the transport's.
  template <class Body>
  [[nodiscard]] status between_streams(Body const& body) const
  {
    if (status const s = over_->check(); !s.ok()) { return s; }
    if (error_ != cudaSuccess) { return detail::cuda_status(error_); }
    if (over_->size() == 1) { return {}; }
    if (status const s = follow(over_->stream(), exec_.stream, events_[2 * most]); !s.ok()) {
      return s;
    }
    status const outcome = body();
    status const joined  = follow(exec_.stream, over_->stream(), events_[2 * most + 1]);
    return outcome.ok() ? joined : outcome;
  }

  template <class Op>
  [[nodiscard]] status in_pieces(wire<Op> const& round) const
  {
    std::size_t const n = static_cast<std::size_t>(over_->size());
    rank_blocks const cut{
      .count = round.count, .element_bytes = sizeof(typename Op::element), .ranks = pieces_};
    constexpr std::size_t spare = detail::maximum(sizeof(typename Op::element), std::size_t{16});
    if (scratch_.size() < round.bytes() + static_cast<std::size_t>(pieces_) * n * spare) {
      return {error_code::invalid_argument, "scratch is smaller than scratch_bytes(plan, pieces)"};
    }
    // On the wire: there 0, there 1, back 0, there 2, back 1 ... Every rank enqueues in this order.
    std::size_t place = 0;
    for (int k = 0; k <= pieces_; ++k) {
      if (k < pieces_) {
        if (status const s = there(round, cut, k, scratch_.data() + place); !s.ok()) { return s; }
        place += detail::round_up(n * blocks_of(cut, k).bytes(over_->rank()), 16);
      }
      if (k > 0) {
        if (status const s = back(round, cut, k - 1); !s.ok()) { return s; }
      }
    }
    return {};
  }

  [[nodiscard]] rank_blocks blocks_of(rank_blocks const& cut, int piece) const noexcept
  {
    return {.count = cut.size(piece), .element_bytes = cut.element_bytes, .ranks = over_->size()};
  }

  // All-to-all on the transport's stream, and then the sum on the executor's.
  template <class Op>
  [[nodiscard]] status there(wire<Op> const& round,
                             rank_blocks const& cut,
                             int piece,
                             std::byte* received) const
  {
    using element            = typename Op::element;
    rank_blocks const blocks = blocks_of(cut, piece);
    auto* const data         = reinterpret_cast<std::byte*>(round.data + cut.begin(piece));
    if (status const s = over_->all_to_all(data, blocks, received); !s.ok()) { return s; }
    if (status const s = follow(exec_.stream, over_->stream(), events_[piece]); !s.ok()) {
      return s;
    }
    std::size_t const begin = cut.begin(piece) + blocks.begin(over_->rank());
    if (status const s = detail::add_received(exec_,
                                              detail::op_from(round.op, begin),
                                              round.data + begin,
                                              reinterpret_cast<element const*>(received),
                                              blocks.size(over_->rank()),
                                              blocks.ranks);
        !s.ok()) {
      return s;
    }
    return detail::cuda_status(cudaEventRecord(events_[most + piece], exec_.stream));
  }

  // All-gather on the transport's stream, when the sum is there.
  template <class Op>
  [[nodiscard]] status back(wire<Op> const& round, rank_blocks const& cut, int piece) const
  {
    if (status const s = wait_for(over_->stream(), events_[most + piece]); !s.ok()) { return s; }
    auto* const data = reinterpret_cast<std::byte*>(round.data + cut.begin(piece));
    return over_->all_gather(data, blocks_of(cut, piece));
  }

  [[nodiscard]] static status wait_for(cudaStream_t later, cudaEvent_t event) noexcept
  {
    return detail::cuda_status(cudaStreamWaitEvent(later, event, 0));
  }

  [[nodiscard]] static status follow(cudaStream_t later,
                                     cudaStream_t earlier,
                                     cudaEvent_t event) noexcept
  {
    cudaError_t const e = cudaEventRecord(event, earlier);
    return e == cudaSuccess ? wait_for(later, event) : detail::cuda_status(e);
  }

  nccl_transport const* over_;
  cuda_executor exec_;
  std::span<std::byte> scratch_;
  int pieces_;
  cudaError_t error_ = cudaSuccess;
  cudaEvent_t events_[2 * most + 2]{};  // arrived and added of each piece, begin and end
};

}  // namespace tersum::inline v0
