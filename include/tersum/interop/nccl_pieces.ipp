// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of nccl_pieces.cuh.

namespace tersum::inline v0 {

template <class Codec>
constexpr std::size_t scratch_bytes(plan<Codec> const& plan, int pieces) noexcept
{
  return scratch_bytes(plan) + static_cast<std::size_t>(pieces) * plan.ranks().size *
                                 detail::maximum(detail::largest_element<Codec>(), std::size_t{16});
}

inline nccl_pieces::nccl_pieces(nccl_transport const& over,
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

inline nccl_pieces::~nccl_pieces()
{
  for (cudaEvent_t const event : events_) {
    if (event != nullptr) { cudaEventDestroy(event); }
  }
}

template <reduce_op Op>
status nccl_pieces::operator()(wire<Op> const& round) const
{
  return between_streams([&]() -> status {
    if constexpr (reduces_in_wire<nccl_transport, Op>) {
      return over_->all_reduce(round);
    } else {
      return in_pieces(round);
    }
  });
}

template <class Element>
status nccl_pieces::operator()(gather_wire<Element> const& round) const
{
  return between_streams([&] { return reduce_over(*over_, exec_)(round); });
}

template <class Element>
status nccl_pieces::operator()(scatter_wire<Element> const& round) const
{
  if (over_->size() == 1) { return reduce_over(*over_, exec_)(round); }
  return between_streams([&] { return reduce_over(*over_, exec_)(round); });
}

template <class Body>
status nccl_pieces::between_streams(Body const& body) const
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
status nccl_pieces::in_pieces(wire<Op> const& round) const
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

inline rank_blocks nccl_pieces::blocks_of(rank_blocks const& cut, int piece) const noexcept
{
  return {.count = cut.size(piece), .element_bytes = cut.element_bytes, .ranks = over_->size()};
}

template <class Op>
status nccl_pieces::there(wire<Op> const& round,
                          rank_blocks const& cut,
                          int piece,
                          std::byte* received) const
{
  using element            = typename Op::element;
  rank_blocks const blocks = blocks_of(cut, piece);
  auto* const data         = reinterpret_cast<std::byte*>(round.data + cut.begin(piece));
  if (status const s = over_->all_to_all(data, blocks, received); !s.ok()) { return s; }
  if (status const s = follow(exec_.stream, over_->stream(), events_[piece]); !s.ok()) { return s; }
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

template <class Op>
status nccl_pieces::back(wire<Op> const& round, rank_blocks const& cut, int piece) const
{
  if (status const s = wait_for(over_->stream(), events_[most + piece]); !s.ok()) { return s; }
  auto* const data = reinterpret_cast<std::byte*>(round.data + cut.begin(piece));
  return over_->all_gather(data, blocks_of(cut, piece));
}

inline status nccl_pieces::wait_for(cudaStream_t later, cudaEvent_t event) noexcept
{
  return detail::cuda_status(cudaStreamWaitEvent(later, event, 0));
}

inline status nccl_pieces::follow(cudaStream_t later,
                                  cudaStream_t earlier,
                                  cudaEvent_t event) noexcept
{
  cudaError_t const e = cudaEventRecord(event, earlier);
  return e == cudaSuccess ? wait_for(later, event) : detail::cuda_status(e);
}

}  // namespace tersum::inline v0
