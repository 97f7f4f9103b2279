// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the communicator of a communication library must offer, wrapped, so that `reduce_over` can use it.

#pragma once

#include <tersum/exchange/rank_blocks.hpp>
#include <tersum/status.hpp>
#include <tersum/wire.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

//! @name Atoms of a transport
//! All ranks make all calls in the same order. Each call *reads and writes* memory of the kind that the transport moves (of
//! the host, or of a device), *needs* no alignment beyond that of elements and no scratch memory, and has moved everything
//! when it returns, or has enqueued it on the transport's stream. What is sent and what is received do not overlap, except
//! where a call works in place. *Errors*: a failure is a status, at least on this rank, with the library's own number in
//! `status::native`; after it the transport cannot be used any more. Arrays are cut as `rank_blocks` says.
//! @{

//! `rank()` is from 0 to `size()` - 1; `check()` says whether the transport can be used.
template <class T>
concept has_ranks = requires(T const& t)
{
  {
    t.rank()
    } -> std::same_as<int>;
  {
    t.size()
    } -> std::same_as<int>;
  {
    t.check()
    } -> std::same_as<status>;
};

//! @brief A communicator of a communication library, wrapped.
//!
//! - `exchange_word(to, value, from, received)` sends 64 bits of host memory to one rank and receives as many from another, for which
//!   it waits. `agree_on` and `probe_network` call it; exchanges do not.
//! - `all_to_all(data, blocks, received)` sends block k of each rank's data to rank k, which receives the ranks' blocks
//!   one after the other, its own among them: size() times blocks.bytes(rank()) bytes.
//! - `all_gather(data, blocks)` works in place: before it block k is valid on rank k, after it on all ranks.
template <class T>
concept transport = has_ranks<T> && requires(
  T const& t, std::byte const* sent, std::byte* data, rank_blocks const& blocks, std::uint64_t word)
{
  {
    t.exchange_word(0, std::uint64_t{}, 0, word)
    } -> std::same_as<status>;
  {
    t.all_to_all(sent, blocks, data)
    } -> std::same_as<status>;
  {
    t.all_gather(data, blocks)
    } -> std::same_as<status>;
};

//! `all_reduce(wire)` reduces in place by the transport's own all-reduce. A transport offers it for the operations that
//! it knows or can call.
template <class T, class Op>
concept reduces_in_wire = requires(T const& t, wire<Op> const& round)
{
  {
    t.all_reduce(round)
    } -> std::same_as<status>;
};

//! @brief `reduce_scatter(round)` reduces by the transport's own reduce-scatter: `round` is a `summed_wire_of`. A transport offers
//! it for the operations that it knows or can call.
template <class T, class Round>
concept scatters_sums = requires(T const& t, Round const& round)
{
  {
    t.reduce_scatter(round)
    } -> std::same_as<status>;
};

//! @brief Optional: `refuse(why)` lets `check()` and all that moves or reduces return `why`, until it is called with a
//! status that is ok. `agree_on` calls it with what it found, so that ranks whose plans differ exchange nothing.
template <class T>
concept has_refusal = requires(T const& t, status const& why)
{
  {
    t.refuse(why)
    } -> std::same_as<void>;
};
//! @}

namespace detail {

//! Sends a word round all ranks, and calls visit(word) with that of each other rank.
template <transport Transport, class Visitor>
[[nodiscard]] status pass_round(Transport const& over, std::uint64_t word, Visitor const& visit)
{
  int const ranks = over.size(), next = (over.rank() + 1) % ranks;
  for (int hop = 1; hop < ranks; ++hop) {
    std::uint64_t const sent = word;
    status const s = over.exchange_word(next, sent, (over.rank() + ranks - 1) % ranks, word);
    if (!s.ok()) { return s; }
    visit(word);
  }
  return {};
}

//! @brief Whether a round is of as many ranks as the transport has. If not, a collective would leave the parts' memory, and a sum
//! overflow or be divided by the wrong number. A sum that no plan made says 0 ranks, and fits any transport.
template <class Round>
[[nodiscard]] constexpr status check_ranks(Round const& round, int ranks) noexcept
{
  constexpr bool sums = requires { round.op; };
  if (round.ranks == ranks || (sums && round.ranks == 0)) { return {}; }
  return {error_code::invalid_argument,
          "the plan's world.size differs from the transport's number of ranks"};
}

}  // namespace detail

}  // namespace tersum::inline v0
