// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One codec on one gradient, on any device.

#pragma once

#include "codecs.hpp"
#include "measured_run.hpp"
#include "time_parts.hpp"

#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/single_process/loopback.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace compare_codecs {

//! Writes times to the measurement, in which what a codec does not do is NaN.
template <class Codec>
void report_times(part_times const& times, measurement& out)
{
  double const none = std::numeric_limits<double>::quiet_NaN();
  out.encode_ns     = times.encode;
  out.reduce_ns     = adds_between<Codec> ? times.reduce : none;
  out.decode_ns     = times.decode;
}

//! @brief Runs one codec of values: every rank owns a shard of the mean of the gradients, and sends it to all.
//!
//! Errors are against that mean. The time of encoding is that of one shard.
template <class Device, tersum::publishing Codec>
run_outcome run_exchange(Device const& device,
                         Codec const& codec,
                         std::vector<std::vector<float>> const& gradients,
                         std::vector<layer> const& layers,
                         run_settings const& settings)
{
  using namespace tersum;
  measured_run<Device> run{device, gradients, settings};
  std::size_t const d = run.coordinates();
  std::vector<float> mean;
  for (double const value : average_ranks(gradients).mean) {
    mean.push_back(static_cast<float>(value));
  }
  std::vector<loopback_shard<Codec, float>> ranks;
  std::vector<std::vector<std::span<float>>> estimates;
  std::size_t begin = 0;
  for (std::size_t k = 0; k < run.ranks(); ++k) {
    auto const plan =
      codec.plan(layout{d}, world{.size = settings.ranks, .rank = static_cast<int>(k)});
    if (!run.keep(plan.check())) { return run.fail(); }
    auto const shard  = run.allocate_floats(plan.shard_size());
    auto const values = run.allocate_floats(d);
    device.upload(shard.data(), mean.data() + begin, shard.size_bytes());
    device.upload(values.data(), std::vector<float>(d).data(), values.size_bytes());
    begin += shard.size();
    auto const state = run.allocate(plan.state_bytes());
    ranks.push_back({plan, shard, values, state, run.allocate(plan.workspace_bytes())});
    estimates.push_back({values});
    if (!run.keep(initialize(device.executor, plan, state, seed))) { return run.fail(); }
  }
  auto const step = [&] {
    return loopback_exchange(device.executor, ranks, reduction_order::direct);
  };
  if (!run.run_steps(layers, estimates, step)) { return run.fail(); }
  auto& out               = run.measured();
  out.bits_per_coordinate = ranks[0].plan.bits_per_coordinate();
  auto const times        = time_values(run, ranks[0]);
  out.encode_ns           = times.encode;
  out.decode_ns           = times.decode;
  return run.finish(ranks[0].got, [] {});
}

//! The tensors of a gradient.
inline std::vector<tersum::tensor> tensors_of(std::vector<layer> const& layers)
{
  std::vector<tersum::tensor> tensors;
  for (layer const& l : layers) {
    tensors.push_back({.name = l.name, .rows = l.rows, .columns = l.columns, .offset = l.offset});
  }
  return tensors;
}

//! @brief The share of coordinates that saturated in the sum; NaN if they cannot.
template <class Device, class Rank>
[[nodiscard]] double saturated_share(Device const& device, Rank const& one)
{
  using namespace tersum;
  using codec = typename Rank::codec_type;
  if constexpr (detail::has_steps<codec>) {
    if (saturates<codec>) {
      std::vector<tensor_record> records(one.plan.tensors());
      device.download(records.data(),
                      one.state.data() + one.plan.offset("records"),
                      records.size() * sizeof(tensor_record));
      double saturated = 0;
      for (auto const& record : records) { saturated += static_cast<double>(record.saturated); }
      double const lanes = static_cast<double>(one.plan.chunks()) * codec::chunk_size;
      return lanes == 0 ? 0 : saturated / lanes;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

//! @brief Runs one codec of all-reduces or of reduce-scatters.
template <class Device, class Codec>
run_outcome run_exchange(Device const& device,
                         Codec const& codec,
                         std::vector<std::vector<float>> const& gradients,
                         std::vector<layer> const& layers,
                         run_settings const& settings)
{
  using namespace tersum;
  std::vector<tensor> tensors;
  if constexpr (is_low_rank<Codec>) {
    if (layers.empty()) { return {{}, "needs layers.csv, which names the matrices"}; }
    tensors = tensors_of(layers);
  }
  measured_run<Device> run{device, gradients, settings};
  std::size_t const n = run.ranks();
  std::size_t const d = run.coordinates();
  using rank_type     = std::conditional_t<ending_in_shards<Codec>,
                                       loopback_shard<Codec, float>,
                                       loopback_rank<Codec, float>>;
  std::vector<rank_type> ranks;
  std::vector<std::span<float>> given;
  std::vector<std::vector<std::span<float>>> estimates(ending_in_shards<Codec> ? 1 : n);
  for (std::size_t k = 0; k < n; ++k) {
    layout const bucket{.coordinates = d, .tensors = tensors};
    auto const plan =
      codec.plan(bucket, world{.size = settings.ranks, .rank = static_cast<int>(k)});
    if (!run.keep(plan.check())) { return run.fail(); }
    auto const gradient  = given.emplace_back(run.allocate_floats(d));
    auto const state     = run.allocate(plan.state_bytes());
    auto const workspace = run.allocate(plan.workspace_bytes());
    if constexpr (ending_in_shards<Codec>) {
      // No coordinate is on two ranks.
      auto const shard = run.allocate_floats(plan.shard_size());
      ranks.push_back({plan, gradient, shard, state, workspace});
      estimates[0].push_back(shard);
    } else {
      ranks.push_back({plan, gradient, state, workspace});
      estimates[k].push_back(gradient);
    }
    if (!run.keep(initialize(device.executor, plan, state, seed))) { return run.fail(); }
  }
  auto const step = [&] {
    for (std::size_t k = 0; k < n; ++k) { run.upload(k, given[k]); }
    return loopback_exchange(device.executor,
                             ranks,
                             ending_in_shards<Codec> ? reduction_order::direct
                                                     : reduction_order::ring);
  };
  if (!run.run_steps(layers, estimates, step)) { return run.fail(); }
  auto const& one         = ranks[0];
  auto& out               = run.measured();
  out.bits_per_coordinate = one.plan.bits_per_coordinate();
  out.saturated_fraction  = saturated_share(device, one);

  // Times come last, so that what they do to the state is without effect.
  auto const upload = [&] { run.upload(0, given[0]); };
  report_times<Codec>(time_parts(run, one, ranks[n - 1], given[0], upload), out);
  return run.finish(given[0], upload);
}

}  // namespace compare_codecs
