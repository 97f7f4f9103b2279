// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges on two levels on any executor, recorded byte by byte.

#pragma once

#include "exchange_fixture.hpp"

#include <tersum/single_process/loopback.hpp>
#include <tersum/two_level_codec.hpp>

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace tersum::tests {

//! @brief What four ranks on two hosts hold after each of two exchanges, and their states.
//! @param call  Is given each exchange as a function without arguments.
template <class Buffer, class Executor, class Codec, class Call = perform_at_once>
[[nodiscard]] exchange_trace record_levels(Executor const& exec,
                                           Codec const& codec,
                                           std::byte fill,
                                           Call call = {})
{
  layout const bucket = odd_bucket().gradient();
  std::deque<Buffer> memory;
  auto const bytes = [&](std::size_t size) -> Buffer& {
    return memory.emplace_back(size, std::size_t{0}, fill);
  };
  std::vector<loopback_rank<Codec, float>> ranks;
  std::vector<Buffer*> gradients, states;
  for (int rank = 0; rank < 4; ++rank) {
    auto const plan = codec.plan(bucket, {.size = 4, .rank = rank}, 2);
    require_ok(plan.check());
    gradients.push_back(&bytes(plan.coordinates() * sizeof(float)));
    states.push_back(&bytes(plan.state_bytes()));
    auto const workspace = bytes(plan.workspace_bytes()).contents();
    auto const values    = gradients.back()->contents();
    ranks.push_back({plan,
                     {reinterpret_cast<float*>(values.data()), plan.coordinates()},
                     states.back()->contents(),
                     workspace});
    require_ok(initialize(exec, plan, states.back()->contents(), 77));
  }
  exchange_trace trace;
  for (int step = 0; step < 2; ++step) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      auto const in = make_gradient<float>(bucket.coordinates, static_cast<int>(rank), step, false);
      gradients[rank]->write(std::as_bytes(std::span{in}));
    }
    std::span<loopback_rank<Codec, float> const> const all{ranks};
    require_ok(call([&] { return loopback_all_reduce_mean(exec, all, reduction_order::direct); }));
    for (std::size_t rank = 0; rank < 4; ++rank) {
      auto const number = static_cast<int>(rank);
      trace.push_back(
        {"mean", step, number, gradients[rank]->read(0, bucket.coordinates * sizeof(float))});
      trace.push_back(
        {"state", step, number, states[rank]->read(0, states[rank]->contents().size())});
    }
  }
  return trace;
}

}  // namespace tersum::tests
