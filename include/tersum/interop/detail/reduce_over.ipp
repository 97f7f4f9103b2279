// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of reduce_over.hpp.

namespace tersum::inline v0 {

namespace detail {

//! At least the bytes of an element of a codec's rounds. A rank's block exceeds the mean of all blocks by less than that.
template <class Codec>
[[nodiscard]] constexpr std::size_t largest_element() noexcept
{
  std::size_t largest = 8;
  if constexpr (requires { typename Codec::payload_op::element; }) {
    largest = maximum(largest, sizeof(typename Codec::payload_op::element));
  }
  return largest;
}

//! @brief Whether an executor can add what a transport brings. A transport with a stream, such as `nccl_transport`, asks
//! for the same stream.
template <class Transport, class Executor>
[[nodiscard]] status check_executor([[maybe_unused]] Transport const& over,
                                    Executor const& exec) noexcept
{
  if (status const s = exec.check(); !s.ok()) { return s; }
  if constexpr (requires { over.check_stream(exec.stream); }) {
    return over.check_stream(exec.stream);
  } else {
    return {};
  }
}

//! @brief Whether scratch memory serves for a round of so many bytes.
[[nodiscard]] inline status check_scratch(std::span<std::byte const> scratch,
                                          std::size_t needed,
                                          void const* round,
                                          std::size_t bytes,
                                          std::string_view too_small) noexcept
{
  if (!are_apart(scratch.data(), minimum(needed, scratch.size()), round, bytes)) {
    return {error_code::invalid_argument, "scratch overlaps the round: it is no workspace"};
  }
  return check_memory(
    scratch, needed, too_small, "scratch is a null pointer", "scratch is not aligned to 16 bytes");
}

//! @brief The parts of a round that differ in size, as blocks that transports move. The round must outlive them.
template <class Round>
[[nodiscard]] rank_blocks blocks_of_shards(Round const& round) noexcept
{
  return {.count         = round.begin(round.ranks),
          .element_bytes = sizeof(typename Round::element),
          .ranks         = round.ranks,
          .place         = [](void const* of, int block) -> rank_blocks::extent {
            auto const& parts = *static_cast<Round const*>(of);
            return {parts.begin(block), parts.size(block)};
          },
          .of = &round};
}

//! @brief The parts of a round that may differ in size. If they do not, and lie one after the other, they are blocks as all
//! collectives cut them, which a transport's own all-gather takes.
template <class Round>
[[nodiscard]] rank_blocks blocks_of_parts(Round const& round) noexcept
{
  std::size_t const size = round.size(0);
  for (int rank = 0; rank < round.ranks; ++rank) {
    if (round.size(rank) != size || round.begin(rank) != static_cast<std::size_t>(rank) * size) {
      return blocks_of_shards(round);
    }
  }
  return {.count         = size * static_cast<std::size_t>(round.ranks),
          .element_bytes = sizeof(typename Round::element),
          .ranks         = round.ranks};
}

//! @brief Adds up the blocks that `all_to_all` brought, in the order of the ranks, whatever order they came in: all of them at
//! once, as `reduce` of gathered payloads does.
//! @param op        The reduction, whose positions count from the block's first element.
//! @param sum       The block's place in the array.
//! @param received  The ranks' blocks of `count` elements each.
template <class Executor, reduce_op Op>
[[nodiscard]] status add_received(Executor const& exec,
                                  Op const& op,
                                  typename Op::element* sum,
                                  typename Op::element const* received,
                                  std::size_t count,
                                  int ranks)
{
  if (count == 0) { return {}; }
  return reduce_payloads(
    exec, op, {sum, count}, static_cast<std::size_t>(ranks), [=](std::size_t k) {
      return received + k * count;
    });
}

//! @brief One of several pieces of every part of an array: whole 16 bytes of it, so that a transport finds every piece aligned where the
//! part is; the last one has the rest. With one piece the parts themselves.
//! @tparam Parts  `rank_blocks`, or a round whose parts differ in size.
template <class Element, class Parts>
struct parts_in_pieces {
  using element = Element;

  Parts const& parts;
  int piece, pieces;
  int ranks = parts.ranks;

  [[nodiscard]] std::size_t begin(int rank) const noexcept
  {
    return rank == ranks ? parts.begin(rank) : parts.begin(rank) + cut(rank, piece);
  }
  [[nodiscard]] std::size_t size(int rank) const noexcept
  {
    return cut(rank, piece + 1) - cut(rank, piece);
  }

 private:
  //! Elements of a part that lie in the first so many pieces.
  [[nodiscard]] std::size_t cut(int rank, int first) const noexcept
  {
    constexpr std::size_t unit = sizeof(element) < 16 ? 16 / sizeof(element) : 1;
    rank_blocks const whole{.count = parts.size(rank) / unit, .element_bytes = 16, .ranks = pieces};
    return first == pieces ? parts.size(rank) : whole.begin(first) * unit;
  }
};

//! @brief The sum of a round over a transport that moves and does not add, by steps of one or several pieces. run(steps, worked, move,
//! work) orders them: it calls move(step, piece) and, after each of the first `worked` steps, work(step, piece); on every rank all
//! pieces have made a step before one makes the next.
//! @tparam Round  `wire`, whose sums come to all ranks, or `summed_wire_of`, whose parts stay on theirs.
template <class Transport, class Executor, class Round, class Run>
class moved_sums {
  using op_type = typename Round::op_type;
  using element = typename Round::element;

  static constexpr bool everywhere = std::same_as<Round, wire<op_type>>;

 public:
  static constexpr int most_pieces = 16;

  Transport const& over;
  Executor const& exec;
  std::span<std::byte> scratch;
  Round const& round;
  int pieces;
  Run const& run;
  std::string_view too_small;  //!< What is said of scratch memory.
  int n  = over.size();
  int me = over.rank();

  //! Each owner gets all ranks' codes of its block and adds them; where all want the sums, they are gathered.
  [[nodiscard]] status direct() const
  {
    places const at = places_of([&](int piece) {
      return with_blocks(
        piece, [&](auto const& blocks, std::size_t) { return blocks.bytes(me) * ranks(); });
    });
    if (status const s = check(at); !s.ok()) { return s; }
    auto const move = [&](int step, int piece) {
      return with_blocks(piece, [&](rank_blocks const& blocks, std::size_t first) {
        auto* const data = reinterpret_cast<std::byte*>(round.data + first);
        return step == 0 ? over.all_to_all(data, blocks, scratch.data() + at.begin[piece])
                         : over.all_gather(data, blocks);
      });
    };
    auto const work = [&](int, int piece) {
      return with_blocks(piece, [&](rank_blocks const& blocks, std::size_t first) {
        std::size_t const begin = first + blocks.begin(me);
        return add_received(
          exec, op(begin), sum_of(begin), received(at, piece), blocks.size(me), n);
      });
    };
    return run(everywhere ? 2 : 1, 1, move, work);
  }

  //! Each block travels once around and collects all ranks. It ends where it belongs, or its sum travels on to those who lack it.
  [[nodiscard]] status ring() const
  {
    places const at = places_of([&](int piece) {
      std::size_t largest = 0;
      for (int rank = 0; rank < n; ++rank) {
        largest = maximum(largest, part(rank, piece).size_bytes());
      }
      return largest;
    });
    if (status const s = check(at); !s.ok()) { return s; }
    constexpr int late = everywhere ? 0 : 1;
    auto const moved   = [&](int hop) { return (me - hop - late + 2 * n) % n; };
    auto const move    = [&](int hop, int piece) {
      auto const sent     = std::as_bytes(part(moved(hop), piece));
      auto const arriving = std::as_writable_bytes(part(moved(hop + 1), piece));
      std::byte* const to = hop < n - 1 ? scratch.data() + at.begin[piece] : arriving.data();
      return over.send_receive(
        (me + 1) % n, sent.data(), sent.size(), (me + n - 1) % n, to, arriving.size());
    };
    auto const work = [&](int hop, int piece) -> status {
      auto const mine = part(moved(hop + 1), piece);
      if (mine.empty()) { return {}; }
      auto const begin  = static_cast<std::size_t>(mine.data() - round.data);
      element* const to = hop == n - 2 ? sum_of(begin) : mine.data();
      return exec.reduce(op(begin), to, received(at, piece), mine.data(), mine.size());
    };
    return run(everywhere ? 2 * (n - 1) : n - 1, n - 1, move, work);
  }

 private:
  //! Where in scratch memory the pieces arrive, from 16 bytes to 16 bytes.
  struct places {
    std::size_t begin[most_pieces];
    std::size_t end;
  };

  template <class Bytes>
  [[nodiscard]] places places_of(Bytes const& bytes) const
  {
    places at{};
    for (int piece = 0; piece < pieces; ++piece) {
      at.begin[piece] = round_up(at.end, 16);
      at.end          = at.begin[piece] + bytes(piece);
    }
    return at;
  }
  [[nodiscard]] status check(places const& at) const
  {
    return check_scratch(scratch, at.end, round.data, round.count * sizeof(element), too_small);
  }
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(n); }
  [[nodiscard]] element const* received(places const& at, int piece) const
  {
    return reinterpret_cast<element const*>(scratch.data() + at.begin[piece]);
  }
  //! The operation from an element of the round on.
  [[nodiscard]] op_type op(std::size_t begin) const
  {
    if constexpr (everywhere) {
      return op_from(round.op, begin);
    } else {
      return {};
    }
  }
  //! Where the sum of an own element of the round goes.
  [[nodiscard]] element* sum_of(std::size_t begin) const
  {
    if constexpr (everywhere) {
      return round.data + begin;
    } else {
      return round.sum + (begin - round.begin(me));
    }
  }
  //! body(blocks, first) with the blocks of a piece, which count from element `first` of the round.
  template <class Body>
  [[nodiscard]] auto with_blocks(int piece, Body const& body) const
  {
    if constexpr (everywhere) {
      rank_blocks const cut{
        .count = round.count, .element_bytes = sizeof(element), .ranks = pieces};
      return body(
        rank_blocks{.count = cut.size(piece), .element_bytes = sizeof(element), .ranks = n},
        cut.begin(piece));
    } else {
      parts_in_pieces<element, Round> const of{round, piece, pieces};
      return body(blocks_of_shards(of), std::size_t{0});
    }
  }
  //! A piece of a part: so each element is added up in the order of its part.
  [[nodiscard]] std::span<element> part(int rank, int piece) const
  {
    auto const of = [&](auto const& parts) {
      parts_in_pieces<element, std::remove_cvref_t<decltype(parts)>> const cut{
        parts, piece, pieces};
      return std::span{round.data + cut.begin(rank), cut.size(rank)};
    };
    if constexpr (everywhere) {
      return of(rank_blocks{.count = round.count, .element_bytes = sizeof(element), .ranks = n});
    } else {
      return of(round);
    }
  }
};

//! @brief The whole round, step by step.
inline constexpr auto in_one_piece =
  [](int steps, int worked, auto const& move, auto const& work) -> status {
  status outcome;
  for (int step = 0; step < steps && outcome.ok(); ++step) {
    outcome = move(step, 0);
    if (outcome.ok() && step < worked) { outcome = work(step, 0); }
  }
  return outcome;
};

//! @name A round by the transport's own collective
//! @{
template <class Transport, class Op>
[[nodiscard]] status sum_in_wire(Transport const& over, wire<Op> const& round)
{
  if constexpr (has_combine_at<Op>) {
    // One all-reduce for each of its parts: in host memory only.
    status outcome;
    round.op.for_each_part(
      round.count, [&]<class Part>(Part const&, std::size_t begin, std::size_t end) {
        static_assert(reduces_in_wire<Transport, Part>,
                      "tersum: this transport's all-reduce cannot do this operation: use "
                      "schedule::direct");
        wire<Part> const part{.data = round.data + begin, .count = end - begin};
        if (outcome.ok()) { outcome = over.all_reduce(part); }
      });
    return outcome;
  } else {
    static_assert(reduces_in_wire<Transport, Op>,
                  "tersum: this transport's all-reduce cannot do this operation: use "
                  "schedule::direct, or schedule::automatic, which falls back to it");
    return over.all_reduce(round);
  }
}

template <class Transport, class Op, class Parts>
[[nodiscard]] status sum_in_wire(Transport const& over, summed_wire_of<Op, Parts> const& round)
{
  static_assert(scatters_sums<Transport, summed_wire_of<Op, Parts>>,
                "tersum: this transport's reduce-scatter cannot do this operation: use "
                "schedule::direct, or schedule::automatic, which falls back to it");
  return over.reduce_scatter(round);
}

template <class Transport, class Round>
inline constexpr bool sums_in_wire = false;
template <class Transport, class Op>
inline constexpr bool sums_in_wire<Transport, wire<Op>> =
  !has_combine_at<Op> && reduces_in_wire<Transport, Op>;
template <class Transport, class Op, class Parts>
inline constexpr bool sums_in_wire<Transport, summed_wire_of<Op, Parts>> =
  scatters_sums<Transport, summed_wire_of<Op, Parts>>;
//! @}

//! @brief Sums a round as the schedule says. The parameters are those of `moved_sums`.
template <schedule Schedule, class Transport, class Executor, class Round, class Run>
[[nodiscard]] status sum_round(Transport const& over,
                               Executor const& exec,
                               std::span<std::byte> scratch,
                               Round const& round,
                               int pieces,
                               Run const& run,
                               std::string_view too_small)
{
  constexpr bool chooses = Schedule == schedule::automatic;
  if constexpr (Schedule == schedule::in_wire || (chooses && sums_in_wire<Transport, Round>)) {
    return sum_in_wire(over, round);
  } else {
    moved_sums<Transport, Executor, Round, Run> const sums{
      over, exec, scratch, round, pieces, run, too_small};
    if constexpr (Schedule == schedule::ring) {
      return sums.ring();
    } else {
      return sums.direct();
    }
  }
}

}  // namespace detail

template <class Codec>
constexpr std::size_t scratch_bytes(plan<Codec> const& plan) noexcept
{
  if constexpr (gathering<Codec> || publishing<Codec>) {
    return 0;
  } else {
    // Parts that are only moved need no scratch memory: the workspace has room for them.
    constexpr bool has_room = scattering<Codec> || sharding<Codec> || copying<Codec>;
    std::uint64_t payload   = has_room ? 0 : std::uint64_t{plan.payload_bytes()};
    if constexpr (summing<Codec>) {
      // The ranks' codes of the own part, or one part on its way round the ring.
      auto const ranks = static_cast<std::uint64_t>(plan.ranks().size);
      payload          = 4 * plan.part_words(plan.ranks().rank) * ranks;
      for (int rank = 0; rank < plan.ranks().size; ++rank) {
        payload = detail::maximum(payload, 4 * plan.part_words(rank));
      }
    }
    std::uint64_t const largest =
      detail::maximum(detail::maximum(std::uint64_t{plan.agreed_bytes()}, payload),
                      std::uint64_t{plan.bypass_bytes()});
    return largest + detail::largest_element<Codec>() * static_cast<std::size_t>(plan.ranks().size);
  }
}

template <schedule Schedule, transport Transport, class Executor>
constexpr transport_reduce<Schedule, Transport, Executor>::transport_reduce(
  Transport const& over, Executor const& exec, std::span<std::byte> scratch) noexcept
  : over_(&over), exec_(exec), scratch_(scratch)
{
}

template <schedule Schedule, transport Transport, class Executor>
template <reduce_op Op>
status transport_reduce<Schedule, Transport, Executor>::operator()(wire<Op> const& round) const
{
  if (status const s = over_->check(); !s.ok()) { return s; }
  if (status const s = detail::check_sums(round, over_->size()); !s.ok()) { return s; }
  if (status const s = detail::check_executor(*over_, exec_); !s.ok()) { return s; }
  if (over_->size() == 1 || round.count == 0) { return {}; }
  return sum(round);
}

template <schedule Schedule, transport Transport, class Executor>
template <class Round>
status transport_reduce<Schedule, Transport, Executor>::check_moved(Round const& round) const
{
  if (status const s = detail::check_parts(round, over_->size()); !s.ok()) { return s; }
  if (status const s = over_->check(); !s.ok()) { return s; }
  return detail::check_executor(*over_, exec_);
}

template <schedule Schedule, transport Transport, class Executor>
template <class Round>
status transport_reduce<Schedule, Transport, Executor>::gather(Round const& round) const
{
  if (status const s = check_moved(round); !s.ok()) { return s; }
  if (over_->size() == 1 || round.count == 0) { return {}; }
  return over_->all_gather(reinterpret_cast<std::byte*>(round.gathered),
                           detail::blocks_of_parts(round));
}

template <schedule Schedule, transport Transport, class Executor>
template <class Round>
status transport_reduce<Schedule, Transport, Executor>::scatter(Round const& round) const
{
  if (status const s = check_moved(round); !s.ok()) { return s; }
  if (round.count == 0) { return {}; }
  if (over_->size() == 1) {
    return exec_.copy(round.received, round.sent + round.begin(0), round.size(0));
  }
  return over_->all_to_all(reinterpret_cast<std::byte const*>(round.sent),
                           detail::blocks_of_parts(round),
                           reinterpret_cast<std::byte*>(round.received));
}

template <schedule Schedule, transport Transport, class Executor>
template <class Op, class Parts>
status transport_reduce<Schedule, Transport, Executor>::operator()(
  summed_wire_of<Op, Parts> const& round) const
{
  static_assert(!has_combine_at<Op>,
                "tersum: a reduce-scatter takes operations that do not depend on the position");
  if (status const s = check_moved(round); !s.ok()) { return s; }
  if (round.count == 0) { return {}; }
  if (over_->size() == 1) { return exec_.copy(round.sum, round.data, round.count); }
  return sum(round);
}

template <schedule Schedule, transport Transport, class Executor>
template <class Round>
status transport_reduce<Schedule, Transport, Executor>::sum(Round const& round) const
{
  return detail::sum_round<Schedule>(*over_,
                                     exec_,
                                     scratch_,
                                     round,
                                     1,
                                     detail::in_one_piece,
                                     "scratch is smaller than scratch_bytes(plan)");
}

}  // namespace tersum::inline v0
