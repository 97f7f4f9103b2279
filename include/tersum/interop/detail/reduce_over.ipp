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
  if constexpr (Schedule == schedule::ring) {
    return ring(round);
  } else if constexpr (Schedule == schedule::direct) {
    return direct(round);
  } else if constexpr (has_combine_at<Op> && Schedule == schedule::in_wire) {
    return parts(round);
  } else if constexpr (has_combine_at<Op>) {
    return direct(round);
  } else if constexpr (reduces_in_wire<Transport, Op>) {
    return over_->all_reduce(round);
  } else {
    static_assert(Schedule == schedule::automatic,
                  "tersum: this transport's all-reduce cannot do this operation: use "
                  "schedule::direct, or schedule::automatic, which falls back to it");
    return direct(round);
  }
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
template <class Op>
rank_blocks transport_reduce<Schedule, Transport, Executor>::blocks_of(
  wire<Op> const& round) const noexcept
{
  return {
    .count = round.count, .element_bytes = sizeof(typename Op::element), .ranks = over_->size()};
}

template <schedule Schedule, transport Transport, class Executor>
template <class Op>
status transport_reduce<Schedule, Transport, Executor>::parts(wire<Op> const& round) const
{
  status outcome;
  round.op.for_each_part(
    round.count, [&]<class Part>(Part const&, std::size_t begin, std::size_t end) {
      static_assert(reduces_in_wire<Transport, Part>,
                    "tersum: this transport's all-reduce cannot do this operation: use "
                    "schedule::direct");
      wire<Part> const part{.data = round.data + begin, .count = end - begin};
      if (outcome.ok()) { outcome = over_->all_reduce(part); }
    });
  return outcome;
}

template <schedule Schedule, transport Transport, class Executor>
template <class Op>
status transport_reduce<Schedule, Transport, Executor>::direct(wire<Op> const& round) const
{
  using element            = typename Op::element;
  rank_blocks const blocks = blocks_of(round);
  int const me             = over_->rank();
  std::size_t const mine   = blocks.size(me);
  std::size_t const needed = mine * sizeof(element) * static_cast<std::size_t>(blocks.ranks);
  if (status const s = check_scratch(round, needed); !s.ok()) { return s; }
  auto* const data = reinterpret_cast<std::byte*>(round.data);
  if (status const s = over_->all_to_all(data, blocks, scratch_.data()); !s.ok()) { return s; }

  std::size_t const begin = blocks.begin(me);
  if (status const s = detail::add_received(exec_,
                                            detail::op_from(round.op, begin),
                                            round.data + begin,
                                            reinterpret_cast<element const*>(scratch_.data()),
                                            mine,
                                            blocks.ranks);
      !s.ok()) {
    return s;
  }
  return over_->all_gather(data, blocks);
}

template <schedule Schedule, transport Transport, class Executor>
template <class Op>
status transport_reduce<Schedule, Transport, Executor>::ring(wire<Op> const& round) const
{
  using element            = typename Op::element;
  rank_blocks const blocks = blocks_of(round);
  int const n              = blocks.ranks;
  int const me             = over_->rank();
  std::size_t const needed = (round.count / static_cast<std::size_t>(n) + 1) * sizeof(element);
  if (status const s = check_scratch(round, needed); !s.ok()) { return s; }
  auto* const data     = reinterpret_cast<std::byte*>(round.data);
  auto const* received = reinterpret_cast<element const*>(scratch_.data());
  // First each block travels once around and collects all ranks, then its sum travels to those who lack it.
  for (int hop = 0; hop < 2 * (n - 1); ++hop) {
    bool const collects = hop < n - 1;
    int const sent      = (me - hop + 2 * n) % n;
    int const arriving  = (me - hop - 1 + 2 * n) % n;
    std::byte* const to = collects ? scratch_.data() : data + blocks.begin_byte(arriving);
    if (status const s = over_->send_receive((me + 1) % n,
                                             data + blocks.begin_byte(sent),
                                             blocks.bytes(sent),
                                             (me + n - 1) % n,
                                             to,
                                             blocks.bytes(arriving));
        !s.ok()) {
      return s;
    }
    if (!collects || blocks.size(arriving) == 0) { continue; }
    std::size_t const begin = blocks.begin(arriving);
    element* const mine     = round.data + begin;
    if (status const s = exec_.reduce(
          detail::op_from(round.op, begin), mine, received, mine, blocks.size(arriving));
        !s.ok()) {
      return s;
    }
  }
  return {};
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
  if constexpr (Schedule == schedule::ring) {
    return ring(round);
  } else if constexpr (Schedule == schedule::direct) {
    return direct(round);
  } else if constexpr (scatters_sums<Transport, summed_wire_of<Op, Parts>>) {
    return over_->reduce_scatter(round);
  } else {
    static_assert(Schedule == schedule::automatic,
                  "tersum: this transport's reduce-scatter cannot do this operation: use "
                  "schedule::direct, or schedule::automatic, which falls back to it");
    return direct(round);
  }
}

template <schedule Schedule, transport Transport, class Executor>
template <class Op, class Parts>
status transport_reduce<Schedule, Transport, Executor>::direct(
  summed_wire_of<Op, Parts> const& round) const
{
  int const me             = over_->rank();
  std::size_t const mine   = round.size(me);
  std::size_t const needed = round.bytes(me) * static_cast<std::size_t>(round.ranks);
  if (status const s = check_scratch(round, needed); !s.ok()) { return s; }
  if (status const s = over_->all_to_all(reinterpret_cast<std::byte const*>(round.data),
                                         detail::blocks_of_shards(round),
                                         scratch_.data());
      !s.ok()) {
    return s;
  }
  return detail::add_received(exec_,
                              Op{},
                              round.sum,
                              reinterpret_cast<typename Op::element const*>(scratch_.data()),
                              mine,
                              round.ranks);
}

template <schedule Schedule, transport Transport, class Executor>
template <class Op, class Parts>
status transport_reduce<Schedule, Transport, Executor>::ring(
  summed_wire_of<Op, Parts> const& round) const
{
  using element       = typename Op::element;
  int const n         = round.ranks;
  int const me        = over_->rank();
  std::size_t largest = 0;
  for (int rank = 0; rank < n; ++rank) { largest = detail::maximum(largest, round.bytes(rank)); }
  if (status const s = check_scratch(round, largest); !s.ok()) { return s; }
  auto const* received = reinterpret_cast<element const*>(scratch_.data());
  // Each part travels once around, collects all ranks, and ends where it belongs.
  for (int hop = 0; hop < n - 1; ++hop) {
    int const sent      = (me - hop - 1 + 2 * n) % n;
    int const arriving  = (me - hop - 2 + 2 * n) % n;
    element* const mine = round.data + round.begin(arriving);
    if (status const s =
          over_->send_receive((me + 1) % n,
                              reinterpret_cast<std::byte const*>(round.data + round.begin(sent)),
                              round.bytes(sent),
                              (me + n - 1) % n,
                              scratch_.data(),
                              round.bytes(arriving));
        !s.ok()) {
      return s;
    }
    if (round.size(arriving) == 0) { continue; }
    element* const to = hop == n - 2 ? round.sum : mine;
    if (status const s = exec_.reduce(Op{}, to, received, mine, round.size(arriving)); !s.ok()) {
      return s;
    }
  }
  return {};
}

template <schedule Schedule, transport Transport, class Executor>
template <class Round>
status transport_reduce<Schedule, Transport, Executor>::check_scratch(
  Round const& round, std::size_t needed) const noexcept
{
  return detail::check_scratch(scratch_,
                               needed,
                               round.data,
                               round.count * sizeof(*round.data),
                               "scratch is smaller than scratch_bytes(plan)");
}

}  // namespace tersum::inline v0
