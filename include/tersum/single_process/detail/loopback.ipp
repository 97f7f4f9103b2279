// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of loopback.hpp: all rounds of an exchange.

#include <tersum/single_process/detail/loopback_rounds.ipp>

namespace tersum::inline v0 {

namespace detail {

template <class Executor, class Ranks>
[[nodiscard]] status loopback_exchange(Executor const& exec,
                                       Ranks const& ranks,
                                       reduction_order order);

//! The rounds of a codec that does not gather, after the agreement.
template <class Executor, class Ranks>
[[nodiscard]] status loopback_payload(Executor const& exec,
                                      Ranks const& ranks,
                                      reduction_order order)
{
  using codec = typename std::remove_cvref_t<decltype(ranks[0])>::codec_type;
  if constexpr (scattering<codec>) {
    if (status const s = scatter_loopback_round(exec, ranks); !s.ok()) { return s; }
    if (status const s =
          for_each_rank(ranks,
                        [&](auto const& r) {
                          return recompress(exec, r.plan, r.gradient, r.state, r.workspace);
                        });
        !s.ok()) {
      return s;
    }
    return gather_loopback_round(exec, ranks);
  } else {
    return reduce_loopback_round(
      exec, ranks, order, [](auto const& r) { return payload_wire(r.plan, r.workspace); });
  }
}

//! @brief The exchange among ranks that have factors as `Codec::factors_type` makes them: P and Q are exchanges
//! themselves.
template <class Executor, class Ranks>
[[nodiscard]] status loopback_factors(Executor const& exec,
                                      Ranks const& ranks,
                                      reduction_order order)
{
  using rank_type = std::remove_cvref_t<decltype(ranks[0])>;
  using codec     = typename rank_type::codec_type;
  using inner     = loopback_rank<typename codec::inner_type, float>;
  auto const each = [&](auto const& part) {
    return for_each_rank(ranks, [&](auto const& r) {
      return part(exec,
                  r.plan.factors(),
                  r.gradient,
                  r.plan.factors_state(r.state),
                  r.plan.factors_workspace(r.workspace));
    });
  };
  auto const exchange = [&](int turn, auto const& wire_of) {
    if (wire_of(ranks[0]).count == 0) { return status{}; }  // a wire without elements is no round
    auto const view = [&](auto const& r) {
      auto const factor = wire_of(r);
      return inner{r.plan.inner(turn),
                   {factor.data, factor.count},
                   r.plan.inner_state(r.state, turn),
                   r.plan.inner_workspace(r.workspace, turn)};
    };
    return loopback_exchange(exec, loopback_view<Ranks, decltype(view)>{ranks, view}, order);
  };
  auto const p = [](auto const& r) {
    return agreed_wire(r.plan.factors(), r.plan.factors_workspace(r.workspace));
  };
  auto const q = [](auto const& r) {
    return payload_wire(r.plan.factors(), r.plan.factors_workspace(r.workspace));
  };
  auto const around = [](auto const& r) {
    return bypass_wire(r.plan.factors(), r.plan.factors_workspace(r.workspace));
  };

  if (status const s = each([](auto const&... with) { return encode(with...); }); !s.ok()) {
    return s;
  }
  if constexpr (codec::agrees) {
    if (status const s = exchange(0, p); !s.ok()) { return s; }
  }
  if (status const s = reduce_loopback_round(exec, ranks, order, around); !s.ok()) { return s; }
  if constexpr (codec::agrees) {
    if (status const s = each([](auto const&... with) { return advance(with...); }); !s.ok()) {
      return s;
    }
  }
  if (status const s = exchange(1, q); !s.ok()) { return s; }
  return each([](auto const&... with) { return decode(with...); });
}

template <class Executor, class Ranks>
status loopback_exchange(Executor const& exec, Ranks const& ranks, reduction_order order)
{
  using codec = typename std::remove_cvref_t<decltype(ranks[0])>::codec_type;
  if constexpr (nesting<codec>) {
    return loopback_factors(exec, ranks, order);
  } else {
    if (status const s = for_each_rank(
          ranks,
          [&](auto const& r) { return encode(exec, r.plan, r.gradient, r.state, r.workspace); });
        !s.ok()) {
      return s;
    }
    if constexpr (codec::agrees) {
      if (status const s = reduce_loopback_round(
            exec, ranks, order, [](auto const& r) { return agreed_wire(r.plan, r.workspace); });
          !s.ok()) {
        return s;
      }
    }
    if constexpr (!gathering<codec>) {
      if (status const s = reduce_loopback_round(
            exec, ranks, order, [](auto const& r) { return bypass_wire(r.plan, r.workspace); });
          !s.ok()) {
        return s;
      }
    }
    if constexpr (codec::agrees) {
      if (status const s = for_each_rank(
            ranks,
            [&](auto const& r) { return advance(exec, r.plan, r.gradient, r.state, r.workspace); });
          !s.ok()) {
        return s;
      }
    }
    if constexpr (gathering<codec>) {
      if (status const s = gather_loopback_round(exec, ranks); !s.ok()) { return s; }
    } else {
      if (status const s = loopback_payload(exec, ranks, order); !s.ok()) { return s; }
    }
    return for_each_rank(
      ranks, [&](auto const& r) { return decode(exec, r.plan, r.gradient, r.state, r.workspace); });
  }
}

}  // namespace detail

template <class Executor, class Codec, class Element>
status loopback_all_reduce_mean(Executor const& exec,
                                std::span<loopback_rank<Codec, Element> const> ranks,
                                reduction_order order)
{
  if (ranks.empty()) { return {error_code::invalid_argument, "ranks is empty"}; }
  if (ranks.size() > detail::max_loopback_ranks) {
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
  return detail::loopback_exchange(exec, ranks, order);
}

}  // namespace tersum::inline v0
