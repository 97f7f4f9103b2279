// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of nccl_pieces.cuh.

namespace tersum::inline v0 {

namespace detail {

//! @brief One of several pieces of every part of a round: whole 16 bytes of it, so that NCCL finds every piece aligned where the
//! part is; the last one has the rest.
template <class Round>
struct sums_in_pieces {
  using element = typename Round::element;

  Round const& round;
  int piece, pieces;
  int ranks = round.ranks;

  [[nodiscard]] std::size_t begin(int rank) const noexcept
  {
    return rank == ranks ? round.begin(rank) : round.begin(rank) + cut(rank, piece);
  }
  [[nodiscard]] std::size_t size(int rank) const noexcept
  {
    return cut(rank, piece + 1) - cut(rank, piece);
  }
  [[nodiscard]] std::size_t bytes(int rank) const noexcept { return size(rank) * sizeof(element); }

 private:
  //! Elements of a part that lie in the first so many pieces.
  [[nodiscard]] std::size_t cut(int rank, int first) const noexcept
  {
    constexpr std::size_t unit = 16 / sizeof(element);
    rank_blocks const whole{.count = round.size(rank) / unit, .element_bytes = 16, .ranks = pieces};
    return first == pieces ? round.size(rank) : whole.begin(first) * unit;
  }
};

}  // namespace detail

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
  return between_streams([&]() -> status {
    if constexpr (Schedule == schedule::ring) {
      return ring(round);
    } else if constexpr (Schedule != schedule::direct && reduces_in_wire<nccl_transport, Op>) {
      return over_->all_reduce(round);
    } else {
      static_assert(Schedule != schedule::in_wire,
                    "tersum: NCCL's all-reduce cannot do this operation: use "
                    "schedule::direct, or schedule::automatic, which falls back to it");
      return direct(round);
    }
  });
}

template <schedule Schedule>
template <class Element>
status nccl_pieces<Schedule>::operator()(gather_wire<Element> const& round) const
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
  return between_streams([&]() -> status {
    if constexpr (Schedule == schedule::ring) {
      return ring(round);
    } else if constexpr (Schedule != schedule::direct &&
                         scatters_sums<nccl_transport, summed_wire_of<Op, Parts>>) {
      return over_->reduce_scatter(round);
    } else {
      static_assert(Schedule != schedule::in_wire,
                    "tersum: NCCL's reduce-scatter cannot do this operation: use "
                    "schedule::direct, or schedule::automatic, which falls back to it");
      return direct(round);
    }
  });
}

template <schedule Schedule>
template <class Element, class Parts>
status nccl_pieces<Schedule>::operator()(gather_wire_of<Element, Parts> const& round) const
{
  if (status const s = detail::check_parts(round, over_->size()); !s.ok()) { return s; }
  return between_streams(
    [&] { return reduce_over(*over_, cuda_executor{over_->stream()})(round); });
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
template <class Op>
status nccl_pieces<Schedule>::direct(wire<Op> const& round) const
{
  using element = typename Op::element;
  if (status const s = check_scratch(round, round.bytes()); !s.ok()) { return s; }
  int const n = over_->size(), me = over_->rank();
  rank_blocks const cut{.count = round.count, .element_bytes = sizeof(element), .ranks = pieces_};
  auto const blocks_of = [&](int piece) {
    return rank_blocks{.count = cut.size(piece), .element_bytes = cut.element_bytes, .ranks = n};
  };
  std::byte* received[most];
  std::byte* place = scratch_.data();
  for (int piece = 0; piece < pieces_; ++piece) {
    received[piece] = place;
    place += detail::round_up(static_cast<std::size_t>(n) * blocks_of(piece).bytes(me), 16);
  }
  auto const move = [&](int step, int piece) {
    auto* const data = reinterpret_cast<std::byte*>(round.data + cut.begin(piece));
    return step == 0 ? over_->all_to_all(data, blocks_of(piece), received[piece])
                     : over_->all_gather(data, blocks_of(piece));
  };
  auto const work = [&](int, int piece) {
    rank_blocks const blocks = blocks_of(piece);
    std::size_t const begin  = cut.begin(piece) + blocks.begin(me);
    return detail::add_received(exec_,
                                detail::op_from(round.op, begin),
                                round.data + begin,
                                reinterpret_cast<element const*>(received[piece]),
                                blocks.size(me),
                                n);
  };
  return pipeline(2, 1, move, work);
}

template <schedule Schedule>
template <class Op>
status nccl_pieces<Schedule>::ring(wire<Op> const& round) const
{
  using element = typename Op::element;
  if (status const s = check_scratch(round, round.bytes()); !s.ok()) { return s; }
  int const n = over_->size(), me = over_->rank();
  rank_blocks const blocks{.count = round.count, .element_bytes = sizeof(element), .ranks = n};
  // Pieces of blocks, so that each element is added up in the order of its block.
  auto const part = [&](int block, int piece) {
    rank_blocks const cut{
      .count = blocks.size(block), .element_bytes = sizeof(element), .ranks = pieces_};
    return std::span{round.data + blocks.begin(block) + cut.begin(piece), cut.size(piece)};
  };
  auto const slots = static_cast<std::size_t>(n * pieces_);
  std::size_t const room =
    detail::round_up((round.count + slots - 1) / slots * sizeof(element), 16);
  auto const received = [&](int piece, std::size_t count) {
    std::byte* const at = scratch_.data() + static_cast<std::size_t>(piece) * room;
    return std::span{reinterpret_cast<element*>(at), count};
  };
  // As in transport_reduce: each block travels once around and collects all ranks, then its sum travels on.
  auto const arriving = [&](int hop) { return (me - hop - 1 + 2 * n) % n; };
  auto const move     = [&](int hop, int piece) {
    auto const sent = std::as_bytes(part((me - hop + 2 * n) % n, piece));
    auto const mine = part(arriving(hop), piece);
    auto const to   = std::as_writable_bytes(hop < n - 1 ? received(piece, mine.size()) : mine);
    return over_->send_receive(
      (me + 1) % n, sent.data(), sent.size(), (me + n - 1) % n, to.data(), to.size());
  };
  auto const work = [&](int hop, int piece) {
    auto const mine  = part(arriving(hop), piece);
    auto const begin = static_cast<std::size_t>(mine.data() - round.data);
    return exec_.reduce(detail::op_from(round.op, begin),
                        mine.data(),
                        received(piece, mine.size()).data(),
                        mine.data(),
                        mine.size());
  };
  return pipeline(2 * (n - 1), n - 1, move, work);
}

template <schedule Schedule>
template <class Op, class Parts>
status nccl_pieces<Schedule>::direct(summed_wire_of<Op, Parts> const& round) const
{
  using element = typename Op::element;
  int const n = over_->size(), me = over_->rank();
  if (status const s = check_scratch(round, static_cast<std::size_t>(n) * round.bytes(me));
      !s.ok()) {
    return s;
  }
  using sums = detail::sums_in_pieces<summed_wire_of<Op, Parts>>;
  std::byte* received[most];
  std::byte* place = scratch_.data();
  for (int piece = 0; piece < pieces_; ++piece) {
    received[piece] = place;
    place +=
      detail::round_up(static_cast<std::size_t>(n) * sums{round, piece, pieces_}.bytes(me), 16);
  }
  auto const move = [&](int, int piece) {
    sums const of{round, piece, pieces_};
    auto const* const data = reinterpret_cast<std::byte const*>(round.data);
    return over_->all_to_all(data, detail::blocks_of_shards(of), received[piece]);
  };
  auto const work = [&](int, int piece) {
    sums const of{round, piece, pieces_};
    return detail::add_received(exec_,
                                Op{},
                                round.sum + of.begin(me) - round.begin(me),
                                reinterpret_cast<element const*>(received[piece]),
                                of.size(me),
                                n);
  };
  return pipeline(1, 1, move, work);
}

template <schedule Schedule>
template <class Op, class Parts>
status nccl_pieces<Schedule>::ring(summed_wire_of<Op, Parts> const& round) const
{
  using element = typename Op::element;
  int const n = over_->size(), me = over_->rank();
  using sums      = detail::sums_in_pieces<summed_wire_of<Op, Parts>>;
  std::size_t all = 0;
  std::size_t place[most + 1]{};  // of each piece in scratch memory
  for (int piece = 0; piece < pieces_; ++piece) {
    std::size_t largest = 0;
    for (int rank = 0; rank < n; ++rank) {
      largest = std::max(largest, sums{round, piece, pieces_}.bytes(rank));
    }
    place[piece + 1] = place[piece] + detail::round_up(largest, 16);
  }
  for (int rank = 0; rank < n; ++rank) { all = std::max(all, round.bytes(rank)); }
  if (status const s = check_scratch(round, all); !s.ok()) { return s; }
  auto const part = [&](int rank, int piece) {
    sums const of{round, piece, pieces_};
    return std::span{round.data + of.begin(rank), of.size(rank)};
  };
  // As in transport_reduce: each part travels once around, collects all ranks, and ends where it belongs.
  auto const arriving = [&](int hop) { return (me - hop - 2 + 2 * n) % n; };
  auto const move     = [&](int hop, int piece) {
    auto const sent = std::as_bytes(part((me - hop - 1 + 2 * n) % n, piece));
    return over_->send_receive((me + 1) % n,
                               sent.data(),
                               sent.size(),
                               (me + n - 1) % n,
                               scratch_.data() + place[piece],
                               part(arriving(hop), piece).size_bytes());
  };
  auto const work = [&](int hop, int piece) -> status {
    auto const mine = part(arriving(hop), piece);
    if (mine.empty()) { return {}; }
    auto const* const received = reinterpret_cast<element const*>(scratch_.data() + place[piece]);
    element* const to =
      hop == n - 2 ? round.sum + (mine.data() - round.data) - round.begin(me) : mine.data();
    return exec_.reduce(Op{}, to, received, mine.data(), mine.size());
  };
  return pipeline(n - 1, n - 1, move, work);
}

template <schedule Schedule>
template <class Round>
status nccl_pieces<Schedule>::check_scratch(Round const& round, std::size_t needed) const noexcept
{
  constexpr std::size_t spare = detail::maximum(sizeof(*round.data), std::size_t{16});
  return detail::check_scratch(scratch_,
                               needed + static_cast<std::size_t>(pieces_ * over_->size()) * spare,
                               round.data,
                               round.count * sizeof(*round.data),
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
