// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What carries messages from one rank to another: between workers and parameter servers.

#pragma once

#include <tersum/interop/transport.hpp>
#include <tersum/status.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>

namespace tersum::inline v0 {

//! What `receive` has found.
struct incoming {
  int from          = -1;  //!< Who sent it; -1: nothing came in time.
  std::size_t bytes = 0;  //!< Its length. A message longer than the memory for it has been dropped.
};

//! @brief Sends and receives whole messages of any length, without an agreement on who sends what when.
//!
//! - `send(to, message)`: when it returns, the message may be overwritten, but need not have arrived. It waits for nobody who does not
//!   receive. Messages from one rank to another keep their order, if they are not lost.
//! - `receive(memory, patience, what)`: the next message of any rank, or, after `patience`, none, which is no error.
//!
//! A failure is a status; after it the transport cannot be used any more. One thread at a time uses it. Memory is the host's.
template <class T>
concept message_transport = has_ranks<T> && requires(T& t,
                                                     std::span<std::byte const> message,
                                                     std::span<std::byte> memory,
                                                     std::chrono::microseconds patience,
                                                     incoming& what)
{
  {
    t.send(0, message)
    } -> std::same_as<status>;
  {
    t.receive(memory, patience, what)
    } -> std::same_as<status>;
};

namespace detail {

//! A hundred years: added to the time of now, the longest wait would be a time of long ago.
inline constexpr std::chrono::hours longest_wait{24 * 365 * 100};

}  // namespace detail

}  // namespace tersum::inline v0
