// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The processor time of a codec, which the performance model is given before an exchange.

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

}  // namespace tersum::network
