// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of nccl_pieces.cuh.

namespace tersum::inline v0 {

template <class Codec>
constexpr std::size_t scratch_bytes(plan<Codec> const& plan, int pieces) noexcept
{
  auto const cut = static_cast<std::size_t>(std::clamp(pieces, 1, nccl_pieces<>::most));
  return scratch_bytes(plan) + cut * static_cast<std::size_t>(plan.ranks().size) *
                                 detail::maximum(detail::largest_element<Codec>(), std::size_t{16});
}

template <schedule Schedule>
nccl_pieces<Schedule>::nccl_pieces(nccl_transport const& over,
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

template <schedule Schedule>
nccl_pieces<Schedule>::~nccl_pieces()
{
  for (cudaEvent_t const event : events_) {
    if (event != nullptr) { cudaEventDestroy(event); }
  }
}

template <schedule Schedule>
template <reduce_op Op>
status nccl_pieces<Schedule>::operator()(wire<Op> const& round) const
{
  if (status const s = over_->check(); !s.ok()) { return s; }
  if (status const s = detail::check_sums(round, over_->size()); !s.ok()) { return s; }
  return between_streams([&] { return sum(round); });
}

template <schedule Schedule>
template <class Round>
status nccl_pieces<Schedule>::gather(Round const& round) const
{
  if (status const s = detail::check_parts(round, over_->size()); !s.ok()) { return s; }
  return between_streams(
    [&] { return reduce_over(*over_, cuda_executor{over_->stream()})(round); });
}

template <schedule Schedule>
template <class Element, class Parts>
status nccl_pieces<Schedule>::operator()(shards_wire_of<Element, Parts> const& round) const
{
  if (status const s = detail::check_parts(round, over_->size()); !s.ok()) { return s; }
  if (over_->size() == 1) {
    if (status const s = over_->check(); !s.ok()) { return s; }
    return exec_.copy(round.received, round.sent + round.begin(0), round.size(0));
  }
  return between_streams(
    [&] { return reduce_over(*over_, cuda_executor{over_->stream()})(round); });
}

template <schedule Schedule>
template <reduce_op Op, class Parts>
status nccl_pieces<Schedule>::operator()(summed_wire_of<Op, Parts> const& round) const
{
  static_assert(!has_combine_at<Op>,
                "tersum: a reduce-scatter takes operations that do not depend on the position");
  if (status const s = detail::check_parts(round, over_->size()); !s.ok()) { return s; }
  if (over_->size() == 1) {
    if (status const s = over_->check(); !s.ok()) { return s; }
    return exec_.copy(round.sum, round.data, round.count);
  }
  return between_streams([&] { return sum(round); });
}

template <schedule Schedule>
template <class Element, class Recompress>
status nccl_pieces<Schedule>::operator()(scatter_wire<Element> const& scattered,
                                         gather_wire<Element> const& gathered,
                                         part_recompression<Recompress> const& between) const
{
  if (status const s = detail::check_parts(scattered, over_->size()); !s.ok()) { return s; }
  std::size_t const count = scattered.count;
  std::size_t const mine  = static_cast<std::size_t>(over_->rank()) * count;
  if (status const s = over_->check(); !s.ok()) { return s; }
  if (over_->size() == 1) {
    if (status const s = exec_.copy(scattered.received, scattered.sent, count); !s.ok()) {
      return s;
    }
    return between.recompress({});
  }
  // The scales travel to the owners first and come back last. What lies in front of them is cut into pieces of whole 16
  // bytes, so that NCCL finds every piece aligned.
  constexpr std::size_t unit = 16 / sizeof(Element);
  rank_blocks const cut{
    .count = (count - between.scales) / unit, .element_bytes = 16, .ranks = pieces_};
  std::size_t const front = cut.count * unit;
  auto const end          = [&](int pieces) { return cut.begin(pieces) * unit; };
  // A chunk that begins in one piece may end in the next one. So with a piece arrive as many words of the next as such a
  // chunk can reach.
  auto const arrived = [&](int pieces) {
    std::size_t const reach = end(pieces) + detail::round_up(between.overlap, unit);
    return pieces == 0 ? 0 : pieces == pieces_ ? front : std::min(reach, front);
  };
  auto const words = [&](auto* array, int rank, std::size_t begin, std::size_t stop) {
    std::size_t const part = static_cast<std::size_t>(rank) * count;
    return std::span{array + part + begin, stop - begin};
  };
  auto const made = [&](int pieces) {
    return std::min<std::size_t>(between.ready(end(pieces)), gathered.count - between.scales);
  };
  auto const mean = [&](int rank, std::size_t begin, std::size_t stop) {
    std::size_t const part = static_cast<std::size_t>(rank) * gathered.count;
    return std::span{gathered.gathered + part + begin, stop - begin};
  };
  auto const there = [&](std::size_t begin, std::size_t stop) {
    return over_->exchange([&](int r) { return words(scattered.sent, r, begin, stop); },
                           [&](int r) { return words(scattered.received, r, begin, stop); });
  };
  auto const move = [&](int step, int piece) -> status {
    if (step == 0) {
      if (piece == 0) {
        if (status const s = there(front, count); !s.ok()) { return s; }
      }
      return there(arrived(piece), arrived(piece + 1));
    }
    std::size_t const begin = made(piece);
    std::size_t const stop  = piece + 1 == pieces_ ? gathered.count : made(piece + 1);
    return over_->exchange([&](int) { return mean(over_->rank(), begin, stop); },
                           [&](int r) { return mean(r, begin, stop); });
  };
  auto const work = [&](int, int piece) {
    bool const last = piece + 1 == pieces_;
    return between.recompress(
      {.begin = end(piece), .end = last ? part_range{}.end : end(piece + 1)});
  };
  return between_streams([&]() -> status {
    if (status const s = exec_.copy(scattered.received + mine, scattered.sent + mine, count);
        !s.ok()) {
      return s;
    }
    return pipeline(2, 1, move, work);
  });
}

template <schedule Schedule>
template <class Body>
status nccl_pieces<Schedule>::between_streams(Body const& body) const
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

template <schedule Schedule>
template <class Move, class Work>
status nccl_pieces<Schedule>::pipeline(int steps,
                                       int worked,
                                       Move const& move,
                                       Work const& work) const
{
  for (int step = 0; step < steps; ++step) {
    for (int piece = 0; piece < pieces_; ++piece) {
      cudaEvent_t const arrived = events_[piece];
      cudaEvent_t const done    = events_[most + piece];
      if (step > 0 && step <= worked) {
        if (status const s = wait_for(over_->stream(), done); !s.ok()) { return s; }
      }
      if (status const s = move(step, piece); !s.ok()) { return s; }
      if (step >= worked) { continue; }
      if (status const s = follow(exec_.stream, over_->stream(), arrived); !s.ok()) { return s; }
      if (status const s = work(step, piece); !s.ok()) { return s; }
      if (cudaError_t const e = cudaEventRecord(done, exec_.stream); e != cudaSuccess) {
        return detail::cuda_status(e);
      }
    }
  }
  return {};
}

template <schedule Schedule>
template <class Round>
status nccl_pieces<Schedule>::sum(Round const& round) const
{
  auto const run = [&](int steps, int worked, auto const& move, auto const& work) {
    return pipeline(steps, worked, move, work);
  };
  return detail::sum_round<Schedule>(*over_,
                                     exec_,
                                     scratch_,
                                     round,
                                     pieces_,
                                     run,
                                     "scratch is smaller than scratch_bytes(plan, pieces)");
}

template <schedule Schedule>
status nccl_pieces<Schedule>::wait_for(cudaStream_t later, cudaEvent_t event) noexcept
{
  return detail::cuda_status(cudaStreamWaitEvent(later, event, 0));
}

template <schedule Schedule>
status nccl_pieces<Schedule>::follow(cudaStream_t later,
                                     cudaStream_t earlier,
                                     cudaEvent_t event) noexcept
{
  cudaError_t const e = cudaEventRecord(event, earlier);
  return e == cudaSuccess ? wait_for(later, event) : detail::cuda_status(e);
}

}  // namespace tersum::inline v0
