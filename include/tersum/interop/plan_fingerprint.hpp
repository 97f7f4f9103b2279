// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Whether all ranks made the same plan. Ask once; ranks with different plans would hang, or add up what does not
//! belong together.

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
//! Equal plans have equal fingerprints, whatever compiler made them. Different plans have different ones but for a
//! chance of 2^-64.
template <class Codec>
[[nodiscard]] constexpr std::uint64_t fingerprint(plan<Codec> const& plan, std::uint64_t seed = 0);

//! @brief Asks all ranks of a transport whether they have the same plan and seed: call it once, before the first
//! exchange.
//!
//! Every rank must call it, whatever plan it has. It sends n - 1 messages of 8 bytes and blocks until those of the
//! others are there. After a refusal the transports of this library refuse every exchange, until agree_on accepts one:
//! a program that goes on all the same hangs nobody, and adds up nothing that does not belong together.
//! @return  The same class on every rank: ok, or invalid_argument if the plan of any rank differs, cannot be made, or
//!          does not name its rank in the transport. Ranks that a message did not reach get transport_failed.
template <transport Transport, class Codec>
[[nodiscard]] status agree_on(Transport const& over, plan<Codec> const& plan, std::uint64_t seed);

}  // namespace tersum::inline v0

#include <tersum/interop/detail/plan_fingerprint.ipp>
