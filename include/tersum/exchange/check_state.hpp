// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! States that are saved and loaded: what to keep beside their bytes, and whether to believe them.
//!
//!     state_seal const seal = seal_state(plan, state);                         before saving both
//!     if (status const s = check_state(plan, state, seal); !s.ok()) { ... }    after loading both
//!
//! All of it reads memory of the host, at any alignment. For states on a device there is `exchange/check_device_state.cuh`; bytes
//! from a file may as well be checked on the host and copied to the device afterwards.

#pragma once

#include <tersum/plan.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief What is kept beside the bytes of a saved state: plain data.
struct state_seal {
  std::uint64_t version;  //!< `state_version` of the library that sealed it.
  std::uint64_t bytes;    //!< `plan::state_bytes()`.
  std::uint64_t
    check;  //!< A hash of plan, version and all bytes: header, records, table and what feedback keeps.
};

//! @brief The seal of a state. One pass over its bytes.
//! @param plan   The plan of the state.
//! @param state  plan.state_bytes() bytes of the host, as `initialize` or the last exchange left them; fewer are not valid.
template <class Codec>
[[nodiscard]] state_seal seal_state(plan<Codec> const& plan,
                                    std::span<std::byte const> state) noexcept;

//! @brief Whether a state can be used with a plan: whether header, records and table say what `initialize` makes of the plan, and
//! what changes from step to step is possible. An exchange with such a state touches no other memory than its own.
//!
//! *Errors*: a state that is smaller than the plan's, of another version, of another plan, or damaged; the sentence says in which
//! part. Bits of seed and step are found by the key that follows from both (factors have none); not those of ratios, of counts, of
//! the residual and of `non_finite_step`, which only a seal finds.
template <class Codec>
[[nodiscard]] status check_state(plan<Codec> const& plan,
                                 std::span<std::byte const> state) noexcept;

//! @brief The same, and whether the bytes are those that were sealed. One flipped bit, wherever it is, is always found.
//! *Errors*: those above, and bytes, a plan or a version other than those that were sealed.
template <class Codec>
[[nodiscard]] status check_state(plan<Codec> const& plan,
                                 std::span<std::byte const> state,
                                 state_seal const& seal) noexcept;

}  // namespace tersum::inline v0

#include <tersum/exchange/detail/check_state.ipp>
