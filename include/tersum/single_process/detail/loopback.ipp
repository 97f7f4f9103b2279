// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of loopback.hpp: all rounds of an exchange.

#include <tersum/single_process/detail/loopback_rounds.ipp>

namespace tersum::inline v0 {

namespace detail {

//! The arguments of one rank.
//! @{
template <class Codec, class Element>
[[nodiscard]] status check_rank(loopback_rank<Codec, Element> const& r)
{
  return check_arguments(r.plan, r.gradient, r.state, r.workspace);
}
template <class Codec, class Element, class ShardElement>
[[nodiscard]] status check_rank(loopback_shard<Codec, Element, ShardElement> const& r)
{
  if (status const s = check_arguments(r.plan, r.gradient, r.state, r.workspace); !s.ok()) {
    return s;
  }
  return check_shard(r.plan, r.shard, r.state, r.workspace);
}
template <class Codec, class ShardElement, class Element>
[[nodiscard]] status check_rank(loopback_values<Codec, ShardElement, Element> const& r)
{
  return check_published(r.plan, r.shard, r.values, r.state, r.workspace);
}

template <class Codec, class Element>
[[nodiscard]] auto arrays_of(loopback_rank<Codec, Element> const& r)
{
  return make_arrays(r.plan, r.gradient, r.gradient, r.state, r.workspace);
}
template <class Codec, class Element, class ShardElement>
[[nodiscard]] auto arrays_of(loopback_shard<Codec, Element, ShardElement> const& r)
{
  return make_arrays(r.plan, r.gradient, r.shard, r.state, r.workspace);
}
template <class Codec, class ShardElement, class Element>
[[nodiscard]] auto arrays_of(loopback_values<Codec, ShardElement, Element> const& r)
{
  return make_arrays(r.plan, r.shard, r.values, r.state, r.workspace);
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

//! @brief An exchange of any form among all ranks, round by round.
template <class Executor, class Ranks>
[[nodiscard]] status loopback_exchange(Executor const& exec,
                                       Ranks const& ranks,
                                       reduction_order order)
{
  using codec = typename std::remove_cvref_t<decltype(ranks[0])>::codec_type;
  if (status const s = check_loopback(ranks); !s.ok()) { return s; }
  if (status const s = for_each_rank(ranks, [](auto const& r) { return check_rank(r); }); !s.ok()) {
    return s;
  }
  if (status const s = exec.check(); !s.ok()) { return s; }
  return walk(typename codec::stages{}, [&]<class Entry>(Entry entry) -> status {
    if constexpr (is_round<Entry>) {
      return loopback_round(exec, ranks, order, entry);
    } else {
      return for_each_rank(
        ranks, [&](auto const& r) { return exec.perform(entry, r.plan, arrays_of(r).of(entry)); });
    }
  });
}

}  // namespace detail

template <class Executor, class Codec, class Element>
status loopback_all_reduce_mean(Executor const& exec,
                                std::span<loopback_rank<Codec, Element> const> ranks,
                                reduction_order order)
{
  return detail::loopback_exchange(exec, ranks, order);
}

template <class Executor, class Codec, class Element, class ShardElement>
status loopback_reduce_scatter_mean(
  Executor const& exec, std::span<loopback_shard<Codec, Element, ShardElement> const> ranks)
{
  return detail::loopback_exchange(exec, ranks, reduction_order::direct);
}

template <class Executor, class Codec, class ShardElement, class Element>
status loopback_all_gather_values(
  Executor const& exec, std::span<loopback_values<Codec, ShardElement, Element> const> ranks)
{
  return detail::loopback_exchange(exec, ranks, reduction_order::direct);
}

}  // namespace tersum::inline v0
