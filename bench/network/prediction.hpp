// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The processor time of a codec, which the performance model is given before an exchange, and what pieces that overlap save: a fit
//! to the exchanges that were measured here.

#pragma once

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/model/exchange.hpp>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <span>
#include <type_traits>
#include <vector>

namespace tersum::network {

//! @brief Processor seconds of this thread.
[[nodiscard]] inline double thread_seconds()
{
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

//! @brief Processor seconds of one exchange that is not sent: up to the payload's round, for the sums of an owner (all of the
//! payload) or the recompression of its parts, and after the last round. Other ranks are taken to have sent what this one has.
//! @param between  status(): called in each round, and not counted.
template <class Codec, class Between>
[[nodiscard]] model::coding coding_of_one(plan<Codec> const& plan,
                                          std::span<float> gradient,
                                          std::span<std::byte> state,
                                          std::span<std::byte> workspace,
                                          Between const& between,
                                          status& outcome)
{
  cpu_executor const exec;
  model::coding spent;
  double since = 0;  // the last round
  double begin = thread_seconds();
  outcome =
    all_reduce_mean(exec, plan, gradient, state, workspace, [&](auto const& round) -> status {
      since = thread_seconds() - begin;
      if constexpr (requires { round.sent; }) {
        spent.encode += since;
        std::copy_n(
          round.sent, round.count * static_cast<std::size_t>(round.ranks), round.received);
      } else if constexpr (requires { round.op; }) {
        spent.encode += since;
        using element = typename std::remove_cvref_t<decltype(round)>::element;
        std::vector<element> sum(round.data, round.data + round.count);
        double const from = thread_seconds();
        status const s    = exec.reduce(round.op, sum.data(), sum.data(), round.data, round.count);
        spent.reduce += thread_seconds() - from;
        if (!s.ok()) { return s; }
      } else {
        (scattering<Codec> ? spent.reduce : spent.encode) += since;
        for (std::size_t rank = 1; rank < static_cast<std::size_t>(round.ranks); ++rank) {
          std::copy_n(round.gathered, round.count, round.gathered + rank * round.count);
        }
      }
      status const s = between();
      begin          = thread_seconds();
      return s;
    });
  spent.decode = thread_seconds() - begin;
  return spent;
}

//! @brief Seconds of an exchange whose gradient is cut into pieces, of which one computes while others are on the network.
//!
//! Two machines, each of which takes a piece at a time (Johnson, Optimal two- and three-stage production schedules, 1954),
//! need the longer of what computing takes, and what the network takes with the coding of one piece before and after it.
//! Computing has the messages of every piece, since a message of few bytes is processor time (system calls, threads that
//! wake up), and where the transport takes processor time for bytes (`host::copy_rate`), what all ranks copy with the cores
//! that they share. The network has the latency of one piece's messages besides its own. Of the shorter one a piece cannot
//! overlap. Where a piece of the gradient is larger than `host::cache`, coding and copying wait for the same memory: the
//! more so the more both are under way at once, and where both take as long, for three tenths of it. A message beside
//! others costs a tenth more where they compute, and a byte of a piece a tenth less than one of large messages. These
//! numbers are no law, but what came closest to the exchanges of bench/network.
//!
//! @param whole             What the exchange would take in one piece, where coding a coordinate costs what it does in pieces.
//! @param coordinates       Of the gradient.
//! @param messages_seconds  Of one piece's messages, while others are under way and nobody computes: processor time, of
//!                          which latency is more.
//! @param bytes             That a rank sends.
//! @param on                The host of the ranks.
//! @param pieces            Equal ones, at least 1.
[[nodiscard]] constexpr double exchange_seconds_in_pieces(model::exchange_time const& whole,
                                                          double coordinates,
                                                          double messages_seconds,
                                                          double bytes,
                                                          model::host const& on,
                                                          int pieces) noexcept
{
  if (pieces <= 1) { return whole.whole(); }
  double const coding   = whole.coding();
  double const sends    = coding / pieces + whole.network + whole.waits;
  double const copies   = .9 * bytes / on.copy_rate * on.slowdown();
  double const computes = coding + 1.1 * pieces * messages_seconds + copies;
  double const longer   = std::max(sends, computes);
  double const shorter  = std::min(sends, computes);
  bool const cached     = coordinates * double{sizeof(float)} / pieces <= on.cache;
  double const beside   = cached || longer <= 0 ? 0.0 : .3 * shorter / longer;
  return longer + (1.0 / pieces + beside) * shorter;
}

}  // namespace tersum::network
