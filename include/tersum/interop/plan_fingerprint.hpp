// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Whether all ranks made the same plan. Ask once; ranks with different plans would hang, or add unlike things.

#pragma once

#include <tersum/description.hpp>
#include <tersum/interop/transport.hpp>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>
#include <tersum/version.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief A hash of 64 bits over all that the ranks of an exchange must have in common: the codec's `describe()`, with
//! policies' names and parameters in full, the layout without names, boundaries of shards, the world's size, bytes of the
//! wire, the seed, and the version of the wire format. The rank is not part of it, nor is tuning.
//!
//! Equal plans have equal fingerprints, whatever compiler made them. Others differ but for a chance of 2^-64.
template <class Codec>
[[nodiscard]] constexpr std::uint64_t fingerprint(plan<Codec> const& plan, std::uint64_t seed = 0)
{
  description all{"plan",
                  TERSUM_VERSION_MAJOR,
                  TERSUM_VERSION_MINOR,
                  seed,
                  plan.ranks().size,
                  plan.wire_bytes(),
                  plan.codec(),
                  plan.gradient()};
  plan.for_each_boundary([&](std::uint64_t begin) { all = {"boundary", all, begin}; });
  return all.hash();
}

namespace detail {

template <class Transport>
void refuse(Transport const&, status const&) noexcept
{
}
template <has_refusal Transport>
void refuse(Transport const& over, status const& why) noexcept
{
  over.refuse(why);
}

//! agree_on, but for what the transport remembers of it.
template <transport Transport, class Codec>
[[nodiscard]] status ask_all(Transport const& over, plan<Codec> const& plan, std::uint64_t seed)
{
  if (status const s = over.check(); !s.ok()) { return s; }
  int const n             = over.size();
  int const me            = over.rank();
  status outcome          = plan.check();
  bool const of_this_rank = plan.ranks().size == n && plan.ranks().rank == me;
  if (outcome.ok() && !of_this_rank) {
    outcome = {error_code::invalid_argument,
               "plan: its world is not {.size = over.size(), .rank = over.rank()}"};
  }
  // A rank that found a fault sends a number that no other has, so that all ranks notice.
  std::uint64_t const mine = outcome.ok() ? fingerprint(plan, seed)
                                          : 0x9e3779b97f4a7c15ull * (static_cast<unsigned>(me) + 1);
  status const passed      = pass_round(over, mine, [&](std::uint64_t received) {
    if (outcome.ok() && received != mine) {
      outcome = {
        error_code::invalid_argument,
        "another rank has another plan or seed: codec, layout, world.size and seed must be the same"};
    }
  });
  return passed.ok() ? outcome : passed;
}

}  // namespace detail

//! @brief Asks all ranks of a transport whether they have the same plan and seed: call it once, before the first exchange.
//!
//! Every rank must call it, whatever plan it has. It sends n - 1 messages of 8 bytes and blocks until those of the
//! others are there. After a refusal the transports of this library refuse every exchange, until agree_on accepts one:
//! a program that goes on all the same hangs nobody, and adds up nothing that does not belong together.
//! @return  The same class on every rank: ok, or invalid_argument if the plan of any rank differs, cannot be made, or
//!          does not name its rank in the transport. Ranks that a message did not reach get transport_failed.
template <transport Transport, class Codec>
[[nodiscard]] status agree_on(Transport const& over, plan<Codec> const& plan, std::uint64_t seed)
{
  detail::refuse(over, {});
  status const outcome = detail::ask_all(over, plan, seed);
  if (!outcome.ok()) {
    detail::refuse(
      over,
      {outcome.code,
       "agree_on has refused the plans of these ranks: until it accepts, nothing is exchanged",
       outcome.native});
  }
  return outcome;
}

}  // namespace tersum::inline v0
