// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of loopback.hpp: all rounds of an exchange.

#include <tersum/single_process/detail/loopback_rounds.ipp>

namespace tersum::inline v0 {

namespace detail {

//! One stage of an exchange, for all ranks.
template <class Executor, class Stage, class Ranks>
[[nodiscard]] status loopback_stage(Executor const& exec, Stage stage, Ranks const& ranks)
{
  return for_each_rank(ranks, [&](auto const& r) {
    return exec.perform(stage, r.plan, make_args(r.plan, r.gradient.data(), r.state, r.workspace));
  });
}

//! One round of an exchange, among all ranks.
template <class Executor, class Round, class Ranks>
[[nodiscard]] status loopback_round(Executor const& exec,
                                    Round round,
                                    Ranks const& ranks,
                                    reduction_order order)
{
  if constexpr (std::is_same_v<Round, rounds::scatter_parts>) {
    return scatter_loopback_round(exec, ranks);
  } else if constexpr (std::is_same_v<Round, rounds::gather_parts>) {
    return gather_loopback_round(exec, ranks);
  } else {
    return reduce_loopback_round(
      exec, ranks, order, [&](auto const& r) { return wire_in(round, r.plan, r.workspace); });
  }
}

//! @brief An exchange of shards among all ranks.
template <class Executor, class Ranks>
[[nodiscard]] status loopback_shards(Executor const& exec, Ranks const& ranks)
{
  using codec = typename std::remove_cvref_t<decltype(ranks[0])>::codec_type;
  if (status const s = exec.check(); !s.ok()) { return s; }
  if (status const s = for_each_rank(ranks,
                                     [](auto const& r) -> status {
                                       if (status const given = check_arguments(
                                             r.plan, r.gradient, r.state, r.workspace);
                                           !given.ok()) {
                                         return given;
                                       }
                                       return check_shard(r.plan, r.shard, r.state, r.workspace);
                                     });
      !s.ok()) {
    return s;
  }
  return walk(typename codec::stages{}, [&]<class Entry>(Entry entry) -> status {
    if constexpr (std::is_same_v<Entry, rounds::scatter_shards>) {
      return scatter_loopback_shards(exec, ranks);
    } else if constexpr (std::is_same_v<Entry, rounds::sum_shards>) {
      return sum_loopback_shards(exec, ranks);
    } else if constexpr (is_round<Entry>) {
      return loopback_round(exec, entry, ranks, reduction_order::direct);
    } else {
      return for_each_rank(ranks, [&](auto const& r) {
        if constexpr (Entry::part == exchange_part::decode) {
          return exec.perform(
            entry, r.plan, make_args(r.plan, r.shard.data(), r.state, r.workspace));
        } else {
          return exec.perform(
            entry, r.plan, make_args(r.plan, r.gradient.data(), r.state, r.workspace));
        }
      });
    }
  });
}

//! @brief An exchange of values among all ranks.
template <class Executor, class Ranks>
[[nodiscard]] status loopback_published(Executor const& exec, Ranks const& ranks)
{
  using codec = typename std::remove_cvref_t<decltype(ranks[0])>::codec_type;
  if (status const s = exec.check(); !s.ok()) { return s; }
  if (status const s =
        for_each_rank(ranks,
                      [](auto const& r) {
                        return check_published(r.plan, r.shard, r.values, r.state, r.workspace);
                      });
      !s.ok()) {
    return s;
  }
  return walk(typename codec::stages{}, [&]<class Entry>(Entry entry) -> status {
    if constexpr (is_round<Entry>) {
      return publish_loopback_round(
        exec, ranks, [&](auto const& r) { return wire_in(entry, r.plan, r.workspace); });
    } else {
      return for_each_rank(ranks, [&](auto const& r) {
        return perform_published(exec, entry, r.plan, r.shard, r.values, r.state, r.workspace);
      });
    }
  });
}

template <class Executor, class Ranks>
[[nodiscard]] status loopback_exchange(Executor const& exec,
                                       Ranks const& ranks,
                                       reduction_order order)
{
  using codec = typename std::remove_cvref_t<decltype(ranks[0])>::codec_type;
  if (status const s = for_each_rank(
        ranks,
        [&](auto const& r) { return check_arguments(r.plan, r.gradient, r.state, r.workspace); });
      !s.ok()) {
    return s;
  }
  if (status const s = exec.check(); !s.ok()) { return s; }
  return walk(typename codec::stages{}, [&]<class Entry>(Entry entry) -> status {
    if constexpr (is_round<Entry>) {
      return loopback_round(exec, entry, ranks, order);
    } else {
      return loopback_stage(exec, entry, ranks);
    }
  });
}

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

}  // namespace detail

template <class Executor, class Codec, class Element>
status loopback_all_reduce_mean(Executor const& exec,
                                std::span<loopback_rank<Codec, Element> const> ranks,
                                reduction_order order)
{
  if (status const s = detail::check_loopback(ranks); !s.ok()) { return s; }
  return detail::loopback_exchange(exec, ranks, order);
}

template <class Executor, class Codec, class Element, class ShardElement>
status loopback_reduce_scatter_mean(
  Executor const& exec, std::span<loopback_shard<Codec, Element, ShardElement> const> ranks)
{
  if (status const s = detail::check_loopback(ranks); !s.ok()) { return s; }
  return detail::loopback_shards(exec, ranks);
}

template <class Executor, class Codec, class ShardElement, class Element>
status loopback_all_gather_values(
  Executor const& exec, std::span<loopback_values<Codec, ShardElement, Element> const> ranks)
{
  if (status const s = detail::check_loopback(ranks); !s.ok()) { return s; }
  return detail::loopback_published(exec, ranks);
}

}  // namespace tersum::inline v0
