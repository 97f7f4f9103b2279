// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of loopback.hpp: one round at a time.

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

template <class Executor, class Ranks, class WireOf>
[[nodiscard]] status reduce_loopback_round(Executor const& exec,
                                           Ranks const& ranks,
                                           reduction_order order,
                                           WireOf const& wire_of)
{
  using wire_type = decltype(wire_of(ranks[0]));
  wire_type wires[max_loopback_ranks];
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) { wires[rank] = wire_of(ranks[rank]); }
  return loopback_all_reduce(exec, std::span<wire_type const>{wires, ranks.size()}, order);
}

//! Every rank receives the other ranks' parts.
template <class Executor, class Ranks>
[[nodiscard]] status gather_loopback_round(Executor const& exec, Ranks const& ranks)
{
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    auto const sent = gathered_wire(ranks[from].plan, ranks[from].workspace);
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      auto const received = gathered_wire(ranks[to].plan, ranks[to].workspace);
      if (received.count != sent.count) {
        return {error_code::invalid_argument,
                "ranks: wires differ in count, so they are of unlike plans"};
      }
      if (to == from) { continue; }
      std::size_t const at = from * sent.count;
      if (status const s = exec.copy(received.data + at, sent.data + at, sent.count); !s.ok()) {
        return s;
      }
    }
  }
  return {};
}

//! Every rank receives its own part from every rank.
template <class Executor, class Ranks>
[[nodiscard]] status scatter_loopback_round(Executor const& exec, Ranks const& ranks)
{
  for (std::size_t to = 0; to < ranks.size(); ++to) {
    auto const received = scattered_wire(ranks[to].plan, ranks[to].workspace);
    for (std::size_t from = 0; from < ranks.size(); ++from) {
      auto const sent = scattered_wire(ranks[from].plan, ranks[from].workspace);
      if (received.count != sent.count) {
        return {error_code::invalid_argument,
                "ranks: wires differ in count, so they are of unlike plans"};
      }
      if (status const s = exec.copy(
            received.received + from * sent.count, sent.sent + to * sent.count, sent.count);
          !s.ok()) {
        return s;
      }
    }
  }
  return {};
}

//! Every rank receives the parts of its own shard from every rank.
template <class Executor, class Ranks>
[[nodiscard]] status scatter_loopback_shards(Executor const& exec, Ranks const& ranks)
{
  for (std::size_t to = 0; to < ranks.size(); ++to) {
    auto const received    = shards_wire(ranks[to].plan, ranks[to].workspace);
    int const part         = static_cast<int>(to);
    std::size_t const size = received.size(part);
    for (std::size_t from = 0; from < ranks.size(); ++from) {
      auto const sent = shards_wire(ranks[from].plan, ranks[from].workspace);
      if (sent.begin(part) != received.begin(part) || sent.size(part) != size) {
        return {error_code::invalid_argument,
                "ranks: wires differ in their parts, so they are of unlike plans"};
      }
      if (status const s =
            exec.copy(received.received + from * size, sent.sent + sent.begin(part), size);
          !s.ok()) {
        return s;
      }
    }
  }
  return {};
}

//! Every rank receives the sum of the parts of its own shard, added in the order of the ranks.
template <class Executor, class Ranks>
[[nodiscard]] status sum_loopback_shards(Executor const& exec, Ranks const& ranks)
{
  for (std::size_t to = 0; to < ranks.size(); ++to) {
    auto const own          = summed_wire(ranks[to].plan, ranks[to].workspace);
    int const part          = static_cast<int>(to);
    std::size_t const begin = own.begin(part);
    std::size_t const size  = own.size(part);
    for (std::size_t from = 0; from < ranks.size(); ++from) {
      auto const sent = summed_wire(ranks[from].plan, ranks[from].workspace);
      if (sent.begin(part) != begin || sent.size(part) != size) {
        return {error_code::invalid_argument,
                "ranks: wires differ in their parts, so they are of unlike plans"};
      }
      if (size == 0) { continue; }
      using op       = typename decltype(own)::op_type;
      status const s = from == 0 ? exec.copy(own.sum, sent.data + begin, size)
                                 : exec.reduce(op{}, own.sum, own.sum, sent.data + begin, size);
      if (!s.ok()) { return s; }
    }
  }
  return {};
}

//! Every rank receives the parts of all ranks, which differ in size.
template <class Executor, class Ranks, class WireOf>
[[nodiscard]] status publish_loopback_round(Executor const& exec,
                                            Ranks const& ranks,
                                            WireOf const& wire_of)
{
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    auto const sent         = wire_of(ranks[from]);
    int const part          = static_cast<int>(from);
    std::size_t const begin = sent.begin(part);
    std::size_t const size  = sent.size(part);
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      auto const received = wire_of(ranks[to]);
      if (received.begin(part) != begin || received.size(part) != size) {
        return {error_code::invalid_argument,
                "ranks: wires differ in their parts, so they are of unlike plans"};
      }
      if (to == from) { continue; }
      if (status const s = exec.copy(received.data + begin, sent.data + begin, size); !s.ok()) {
        return s;
      }
    }
  }
  return {};
}

}  // namespace detail

}  // namespace tersum::inline v0
