// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of loopback.hpp.

namespace tersum::inline v0 {

namespace detail {

//! The library allocates nothing, so the wires of one round lie on the stack.
inline constexpr std::size_t max_loopback_ranks = 256;

template <class Executor, class Codec, class Element, class Wire>
[[nodiscard]] status reduce_loopback_round(Executor const& exec,
                                           std::span<loopback_rank<Codec, Element> const> ranks,
                                           reduction_order order,
                                           Wire (*wire_of)(plan<Codec> const&,
                                                           std::span<std::byte>))
{
  Wire wires[max_loopback_ranks];
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    wires[rank] = wire_of(ranks[rank].plan, ranks[rank].workspace);
  }
  return loopback_all_reduce(exec, std::span<Wire const>{wires, ranks.size()}, order);
}

//! Every rank receives the other ranks' parts.
template <class Executor, class Codec, class Element>
[[nodiscard]] status gather_loopback_round(Executor const& exec,
                                           std::span<loopback_rank<Codec, Element> const> ranks)
{
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    auto const sent = gathered_wire(ranks[from].plan, ranks[from].workspace);
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      auto const received = gathered_wire(ranks[to].plan, ranks[to].workspace);
      if (received.count != sent.count) {
        return {error_code::invalid_argument,
                "the ranks' wires differ in their number of elements"};
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
template <class Executor, class Codec, class Element>
[[nodiscard]] status scatter_loopback_round(Executor const& exec,
                                            std::span<loopback_rank<Codec, Element> const> ranks)
{
  for (std::size_t to = 0; to < ranks.size(); ++to) {
    auto const received = scattered_wire(ranks[to].plan, ranks[to].workspace);
    for (std::size_t from = 0; from < ranks.size(); ++from) {
      auto const sent = scattered_wire(ranks[from].plan, ranks[from].workspace);
      if (received.count != sent.count) {
        return {error_code::invalid_argument,
                "the ranks' wires differ in their number of elements"};
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

}  // namespace detail

template <class Executor, class Codec, class Element>
status loopback_all_reduce_mean(Executor const& exec,
                                std::span<loopback_rank<Codec, Element> const> ranks,
                                reduction_order order)
{
  if (ranks.size() > detail::max_loopback_ranks) {
    return {error_code::invalid_argument, "a loopback exchange has at most 256 ranks"};
  }
  for (auto const& r : ranks) {
    if (status const s = encode(exec, r.plan, r.gradient, r.state, r.workspace); !s.ok()) {
      return s;
    }
  }
  if constexpr (Codec::agrees) {
    using wire_type = decltype(agreed_wire(ranks[0].plan, ranks[0].workspace));
    if (status const s = detail::reduce_loopback_round<Executor, Codec, Element, wire_type>(
          exec,
          ranks,
          order,
          [](plan<Codec> const& p, std::span<std::byte> w) { return agreed_wire(p, w); });
        !s.ok()) {
      return s;
    }
    for (auto const& r : ranks) {
      if (status const s = advance(exec, r.plan, r.gradient, r.state, r.workspace); !s.ok()) {
        return s;
      }
    }
  }
  if constexpr (gathering<Codec>) {
    if (status const s = detail::gather_loopback_round(exec, ranks); !s.ok()) { return s; }
  } else {
    if constexpr (recompressing<Codec>) {
      if (status const s = detail::scatter_loopback_round(exec, ranks); !s.ok()) { return s; }
      for (auto const& r : ranks) {
        if (status const s = recompress(exec, r.plan, r.gradient, r.state, r.workspace); !s.ok()) {
          return s;
        }
      }
      if (status const s = detail::gather_loopback_round(exec, ranks); !s.ok()) { return s; }
    } else {
      using payload_type = decltype(payload_wire(ranks[0].plan, ranks[0].workspace));
      if (status const s = detail::reduce_loopback_round<Executor, Codec, Element, payload_type>(
            exec,
            ranks,
            order,
            [](plan<Codec> const& p, std::span<std::byte> w) { return payload_wire(p, w); });
          !s.ok()) {
        return s;
      }
    }
    using bypass_type = decltype(bypass_wire(ranks[0].plan, ranks[0].workspace));
    if (status const s = detail::reduce_loopback_round<Executor, Codec, Element, bypass_type>(
          exec,
          ranks,
          order,
          [](plan<Codec> const& p, std::span<std::byte> w) { return bypass_wire(p, w); });
        !s.ok()) {
      return s;
    }
  }
  for (auto const& r : ranks) {
    if (status const s = decode(exec, r.plan, r.gradient, r.state, r.workspace); !s.ok()) {
      return s;
    }
  }
  return {};
}

}  // namespace tersum::inline v0
