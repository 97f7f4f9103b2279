// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Whether all ranks made the same plan, asked once instead of hanging or adding up what does not belong together.

#pragma once

#include <tersum/chunk/top_coordinates.hpp>
#include <tersum/interop/transport.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>
#include <tersum/version.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief 64 bits over all that the ranks of an exchange must have in common: the codec's policies and parameters, the
//! layout but for names, the world's size, the seed, and the version of the wire format. Not the rank.
//!
//! Equal plans have equal fingerprints whatever compiled them; unlike plans have unlike ones but for a chance of 2^-64,
//! and for a policy of your own that differs from another one in none of the values that are probed.
template <class Codec>
[[nodiscard]] std::uint64_t fingerprint(plan<Codec> const& plan, std::uint64_t seed = 0);

//! @brief Asks all ranks of a transport whether they have the same plan and seed: call it once, before the first exchange.
//!
//! Every rank must call it, with whatever plan it has. n - 1 messages of 8 bytes; blocks until they are there.
//! @return  The same class on every rank: ok, or invalid_argument if a single rank's plan differs, cannot be made or does
//!          not name its rank in the transport; transport_failed on ranks that a message did not reach.
template <transport Transport, class Codec>
[[nodiscard]] status agree_on(Transport const& over, plan<Codec> const& plan, std::uint64_t seed);

}  // namespace tersum::inline v0

#include <tersum/interop/plan_fingerprint.ipp>
