// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of loopback.hpp: all rounds of an exchange.

namespace tersum::inline v0 {

template <class Executor, reduce_op Op>
status loopback_all_reduce(Executor const& exec,
                           std::span<wire<Op> const> ranks,
                           reduction_order order)
{
  std::size_t const n = ranks.size();
  if (n < 2) { return {}; }
  for (wire<Op> const& other : ranks) {
    if (other.count != ranks[0].count) {
      return {error_code::invalid_argument,
              "ranks: wires differ in count, so they are of unlike plans"};
    }
  }
  rank_blocks const blocks{.count         = ranks[0].count,
                           .element_bytes = sizeof(typename Op::element),
                           .ranks = order == reduction_order::ring ? static_cast<int>(n) : 1};
  for (std::size_t block = 0; block < static_cast<std::size_t>(blocks.ranks); ++block) {
    std::size_t const begin = blocks.begin(static_cast<int>(block));
    std::size_t const end   = blocks.begin(static_cast<int>(block) + 1);
    // The block travels from rank to rank; each adds its own and keeps the partial sum.
    for (std::size_t hop = 1; hop < n; ++hop) {
      auto* const mine           = ranks[(block + hop) % n].data + begin;
      auto const* const received = ranks[(block + hop - 1) % n].data + begin;
      if (status const s =
            exec.reduce(detail::op_from(ranks[0].op, begin), mine, received, mine, end - begin);
          !s.ok()) {
        return s;
      }
    }
    std::size_t const last = (block + n - 1) % n;
    for (std::size_t rank = 0; rank < n; ++rank) {
      if (rank == last) { continue; }
      if (status const s =
            exec.copy(ranks[rank].data + begin, ranks[last].data + begin, end - begin);
          !s.ok()) {
        return s;
      }
    }
  }
  return {};
}

namespace detail {

//! The library allocates nothing, so the wires of one round lie on the stack.
inline constexpr std::size_t max_loopback_ranks = 256;

//! @brief Calls body(rank) for all ranks, up to the first error.
template <class Ranks, class Body>
[[nodiscard]] status for_each_rank(Ranks const& ranks, Body const& body)
{
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (status const s = body(ranks[rank]); !s.ok()) { return s; }
  }
  return {};
}

//! @name Moves the part of a rank between it and another one, by the kind of the round
//! `own` is the wire of the rank whose part it is, `its` that of the other.
//! @{
//! The rank receives its part from every rank.
template <class Executor, class Wire>
requires requires(Wire const& round) { round.sent; }
[[nodiscard]] status move_part(Executor const& exec,
                               Wire const& own,
                               Wire const& its,
                               std::size_t other,
                               std::size_t begin,
                               std::size_t size)
{
  return exec.copy(own.received + other * size, its.sent + begin, size);
}

//! It receives the sum of its part, added in the order of the ranks.
template <class Executor, class Op, class Parts>
[[nodiscard]] status move_part(Executor const& exec,
                               summed_wire_of<Op, Parts> const& own,
                               summed_wire_of<Op, Parts> const& its,
                               std::size_t other,
                               std::size_t begin,
                               std::size_t size)
{
  auto const* const of = its.data + begin;
  return other == 0 ? exec.copy(own.sum, of, size) : exec.reduce(Op{}, own.sum, own.sum, of, size);
}

//! Every rank receives its part.
template <class Executor, class Wire>
requires requires(Wire const& round) { round.gathered; }
[[nodiscard]] status move_part(Executor const& exec,
                               Wire const& own,
                               Wire const& its,
                               std::size_t,
                               std::size_t begin,
                               std::size_t size)
{
  if (own.gathered == its.gathered) { return {}; }
  return exec.copy(its.gathered + begin, own.gathered + begin, size);
}
//! @}

//! @brief One round among all ranks, of which wire_at(rank) is the wire.
//! @{
template <class Executor, class WireAt, reduce_op Op>
[[nodiscard]] status loopback_round(Executor const& exec,
                                    std::size_t ranks,
                                    reduction_order order,
                                    WireAt const& wire_at,
                                    wire<Op> const&)
{
  wire<Op> wires[max_loopback_ranks];
  for (std::size_t rank = 0; rank < ranks; ++rank) { wires[rank] = wire_at(rank); }
  return loopback_all_reduce(exec, std::span<wire<Op> const>{wires, ranks}, order);
}

template <class Executor, class WireAt, class Wire>
[[nodiscard]] status loopback_round(
  Executor const& exec, std::size_t ranks, reduction_order, WireAt const& wire_at, Wire const&)
{
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Wire const own          = wire_at(rank);
    int const part          = static_cast<int>(rank);
    std::size_t const begin = own.begin(part), size = own.size(part);
    for (std::size_t other = 0; other < ranks; ++other) {
      Wire const its = wire_at(other);
      if (its.begin(part) != begin || its.size(part) != size) {
        return {error_code::invalid_argument,
                "ranks: wires differ in their parts, so they are of unlike plans"};
      }
      if (size == 0) { continue; }
      if (status const s = move_part(exec, own, its, other, begin, size); !s.ok()) { return s; }
    }
  }
  return {};
}
//! @}

//! Whether the ranks' plans are of these ranks.
template <class Ranks>
[[nodiscard]] status check_loopback(Ranks const& ranks) noexcept
{
  if (ranks.empty()) { return {error_code::invalid_argument, "ranks is empty"}; }
  if (ranks.size() > max_loopback_ranks) {
    return {error_code::invalid_argument,
            "ranks.size() is above 256, the most of a loopback exchange"};
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    world const& named = ranks[rank].plan.ranks();
    if (static_cast<std::size_t>(named.size) != ranks.size() ||
        static_cast<std::size_t>(named.rank) != rank) {
      return {error_code::invalid_argument,
              "ranks: the plan of number i is not of the world {.size = ranks.size(), .rank = i}"};
    }
  }
  return {};
}

//! @brief One round of the list of stages among all ranks.
template <class Executor, class Ranks, class Round>
[[nodiscard]] status loopback_round(Executor const& exec,
                                    Ranks const& ranks,
                                    reduction_order order,
                                    Round round)
{
  auto const wire_at = [&](std::size_t rank) {
    return wire_of(round, ranks[rank].plan, ranks[rank].workspace);
  };
  return loopback_round(exec, ranks.size(), order, wire_at, wire_at(0));
}

}  // namespace detail

template <class Executor, std::ranges::contiguous_range Ranks>
status loopback_exchange(Executor const& exec, Ranks const& ranks, reduction_order order)
{
  using namespace detail;
  using codec = typename std::remove_cvref_t<decltype(ranks[0])>::codec_type;
  if (status const s = check_loopback(ranks); !s.ok()) { return s; }
  if (status const s = for_each_rank(ranks, [](auto const& r) { return r.check(); }); !s.ok()) {
    return s;
  }
  if (status const s = exec.check(); !s.ok()) { return s; }
  return walk(typename codec::stages{}, [&]<class Entry>(Entry entry) -> status {
    if constexpr (is_round<Entry>) {
      return loopback_round(exec, ranks, order, entry);
    } else {
      return for_each_rank(
        ranks, [&](auto const& r) { return exec.perform(entry, r.plan, r.arrays().of(entry)); });
    }
  });
}

}  // namespace tersum::inline v0
