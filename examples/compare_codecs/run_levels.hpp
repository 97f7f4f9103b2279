// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges on two levels.

#pragma once

#include "codecs.hpp"
#include "measured_run.hpp"
#include "time_parts.hpp"

#include <tersum/exchange/two_levels.hpp>
#include <tersum/single_process/loopback.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace compare_codecs {

//! A `two_level_codec` among hosts of so many ranks.
template <class Codec>
struct on_hosts {
  Codec codec;
  int ranks;
};
template <class Codec>
on_hosts(Codec, int) -> on_hosts<Codec>;

//! @brief Runs a codec on two levels. Bits are those between hosts; `bits_within` those within.
template <class Device, class Codec>
run_outcome run_exchange(Device const& device,
                         on_hosts<Codec> const& hosts,
                         std::vector<std::vector<float>> const& gradients,
                         std::vector<layer> const& layers,
                         run_settings const& settings)
{
  using namespace tersum;
  if (settings.ranks % hosts.ranks != 0 || settings.ranks == hosts.ranks) {
    return {{}, "needs several hosts of " + std::to_string(hosts.ranks) + " ranks"};
  }
  measured_run<Device> run{device, gradients, settings};
  std::vector<loopback_rank<Codec, float>> ranks;
  std::vector<std::vector<std::span<float>>> estimates;
  for (std::size_t k = 0; k < run.ranks(); ++k) {
    world const here{.size = settings.ranks, .rank = static_cast<int>(k)};
    auto const plan = hosts.codec.plan(layout{run.coordinates()}, here, hosts.ranks);
    if (!run.keep(plan.check())) { return run.fail(); }
    auto const gradient = run.allocate_floats(run.coordinates());
    auto const state    = run.allocate(plan.state_bytes());
    ranks.push_back({plan, gradient, state, run.allocate(plan.workspace_bytes())});
    estimates.push_back({gradient});
    if (!run.keep(initialize(device.executor, plan, state, seed))) { return run.fail(); }
  }
  auto const step = [&] {
    for (std::size_t k = 0; k < ranks.size(); ++k) { run.upload(k, ranks[k].gradient); }
    std::span<loopback_rank<Codec, float> const> const all{ranks};
    return loopback_all_reduce_mean(device.executor, all, reduction_order::ring);
  };
  if (!run.run_steps(layers, estimates, step)) { return run.fail(); }
  auto const& one         = ranks[0];
  auto& out               = run.measured();
  out.bits_per_coordinate = one.plan.bits_per_coordinate();
  out.bits_within =
    8 * static_cast<double>(one.plan.bytes_within()) / static_cast<double>(run.coordinates());

  // A rank's work in the three exchanges.
  auto const scatter = [](auto const& r) {
    return loopback_shard<typename Codec::scatter_type, float>{r.plan.scatter(),
                                                               r.gradient,
                                                               r.plan.shard(r.workspace),
                                                               r.plan.scatter_state(r.state),
                                                               r.plan.inner_workspace(r.workspace)};
  };
  auto const between = [](auto const& r) {
    return loopback_rank<typename Codec::between_type, float>{r.plan.between(),
                                                              r.plan.shard(r.workspace),
                                                              r.plan.between_state(r.state),
                                                              r.plan.inner_workspace(r.workspace)};
  };
  loopback_values<typename Codec::gather_type, float> const gather{
    one.plan.gather(),
    one.plan.shard(one.workspace),
    one.gradient,
    one.plan.gather_state(one.state),
    one.plan.inner_workspace(one.workspace)};
  auto const& last  = ranks.back();
  auto const upload = [&] { run.upload(0, one.gradient); };
  part_times times  = time_parts(run, scatter(one), scatter(last), upload);
  times += time_parts(
    run, between(one), between(last), [&] { run.upload(0, one.plan.shard(one.workspace)); });
  times += time_values(run, gather);
  out.encode_ns = times.encode;
  out.reduce_ns = times.reduce;
  out.decode_ns = times.decode;
  return run.finish(one.gradient, upload);
}

}  // namespace compare_codecs
