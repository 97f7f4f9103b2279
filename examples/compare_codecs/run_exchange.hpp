// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One codec on one device: exchanges through a loopback all-reduce, errors and times.

#pragma once

#include "codecs.hpp"
#include "measured_estimates.hpp"

#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/exchange/sorted.hpp>
#include <tersum/single_process/loopback.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace compare_codecs {

//! @brief Times of one rank's work: encode, reduce and decode. `prepare` makes the gradient that is encoded; `keep` takes the status
//! of every call. Another rank's payload is what a reduction adds.
template <class Device, class Rank, class Prepare, class Keep>
void time_parts(Device const& device,
                Rank const& one,
                [[maybe_unused]] Rank const& last,
                run_settings const& settings,
                Prepare const& prepare,
                Keep const& keep,
                measurement& out)
{
  using namespace tersum;
  using codec           = typename Rank::codec_type;
  auto const run_encode = [&] {
    if constexpr (nesting<codec>) {
      // Factors are encoded and decoded before the others are made of them: all counts as encoding.
      keep(all_reduce_mean(
        device.executor, one.plan, one.gradient, one.state, one.workspace, [](auto const&) {}));
    } else {
      keep(measure(device.executor, one.plan, one.gradient, one.state, one.workspace));
      keep(encode(device.executor, one.plan, one.gradient, one.state, one.workspace));
    }
  };
  out.encode_ns = device.best_ns(settings.repeat, prepare, run_encode);
  if constexpr (nesting<codec>) {
    out.decode_ns = out.reduce_ns = std::numeric_limits<double>::quiet_NaN();
  } else {
    out.decode_ns = device.best_ns(settings.repeat, run_encode, [&] {
      if constexpr (ending_in_shards<codec>) {
        keep(decode_shard(device.executor, one.plan, one.shard, one.state, one.workspace));
      } else {
        keep(decode(device.executor, one.plan, one.gradient, one.state, one.workspace));
      }
    });
  }
  if constexpr (scattering<codec>) {
    out.reduce_ns = device.best_ns(settings.repeat, run_encode, [&] {
      keep(recompress(device.executor, one.plan, one.gradient, one.state, one.workspace));
    });
  } else if constexpr (ending_in_shards<codec> || copying<codec>) {
    out.reduce_ns = std::numeric_limits<
      double>::quiet_NaN();  // added as they are decoded, or by a reduce-scatter
  } else if constexpr (!gathering<codec> && !nesting<codec>) {
    // A ring reduce-scatter has each rank add (n - 1) / n of the payload.
    auto const payload       = payload_wire(one.plan, one.workspace);
    auto const n             = static_cast<std::size_t>(one.plan.ranks().size);
    std::size_t const shares = payload.count / n * (n - 1);
    out.reduce_ns            = device.best_ns(settings.repeat, run_encode, [&] {
      auto const other = payload_wire(last.plan, last.workspace);
      keep(device.executor.reduce(payload.op, payload.data, other.data, payload.data, shares));
    });
  }
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
  std::size_t const n = gradients.size();
  std::size_t const d = gradients[0].size();
  std::vector<float> mean(d);
  for (std::size_t i = 0; i < d; ++i) {
    double sum = 0;
    for (auto const& of_rank : gradients) { sum += static_cast<double>(of_rank[i]); }
    mean[i] = static_cast<float>(sum / static_cast<double>(n));
  }
  std::vector<typename Device::buffer> memory;
  auto const allocate = [&](std::size_t bytes) {
    memory.push_back(device.allocate(bytes));
    return std::span{memory.back().data(), bytes};
  };
  auto const fail = [](status const& s) { return run_outcome{{}, std::string(s.message)}; };
  std::vector<loopback_values<Codec, float>> ranks;
  std::size_t begin = 0;
  for (std::size_t k = 0; k < n; ++k) {
    auto const plan =
      codec.plan(layout{d}, world{.size = static_cast<int>(n), .rank = static_cast<int>(k)});
    if (auto const s = plan.check(); !s.ok()) { return fail(s); }
    auto const floats = [&](std::size_t count) {
      return std::span{reinterpret_cast<float*>(allocate(count * sizeof(float)).data()), count};
    };
    auto const shard  = floats(plan.shard_size());
    auto const values = floats(d);
    device.upload(shard.data(), mean.data() + begin, shard.size_bytes());
    device.upload(values.data(), std::vector<float>(d).data(), values.size_bytes());
    begin += shard.size();
    auto const state = allocate(plan.state_bytes());
    ranks.push_back({plan, shard, values, state, allocate(plan.workspace_bytes())});
    if (auto const s = initialize(device.executor, plan, state, 20241118); !s.ok()) {
      return fail(s);
    }
  }
  measurement out;
  out.bits_per_coordinate = ranks[0].plan.bits_per_coordinate();
  out.saturated_fraction  = std::numeric_limits<double>::quiet_NaN();
  out.reduce_ns           = std::numeric_limits<double>::quiet_NaN();
  out.ranks_identical     = true;
  measured_estimates measured(gradients, settings.steps);
  std::vector<float> first_rank(d), other_rank(d);
  for (int step = 0; step < settings.steps; ++step) {
    std::span<loopback_values<Codec, float> const> const all{ranks};
    if (auto const s = loopback_all_gather_values(device.executor, all); !s.ok()) {
      return fail(s);
    }
    device.download(first_rank.data(), ranks[0].values.data(), d * sizeof(float));
    for (std::size_t k = 1; k < n; ++k) {
      device.download(other_rank.data(), ranks[k].values.data(), d * sizeof(float));
      out.ranks_identical =
        out.ranks_identical &&
        std::memcmp(first_rank.data(), other_rank.data(), d * sizeof(float)) == 0;
    }
    measured.add(first_rank);
  }
  measured.report(layers, out);
  auto const& one = ranks[0];
  status broken{};
  auto const keep = [&](status const& s) {
    if (!s.ok()) { broken = s; }
  };
  auto const run_encode = [&] {
    keep(encode_shard(device.executor, one.plan, one.shard, one.values, one.state, one.workspace));
  };
  out.encode_ns = device.best_ns(
    settings.repeat, [] {}, run_encode);
  out.decode_ns     = device.best_ns(settings.repeat, run_encode, [&] {
    keep(decode_values(device.executor, one.plan, one.values, one.state, one.workspace));
  });
  auto const target = device.allocate(d * sizeof(float));
  out.memcpy_ns     = device.best_ns(
    settings.repeat,
    [] {},
    [&] { device.copy(target.data(), one.values.data(), d * sizeof(float)); });
  if (!broken.ok()) { return fail(broken); }
  return {out, {}};
}

//! @brief Runs one codec.
//!
//! A `Device` has an `executor`, a `buffer` of memory that it can read, `upload`, `download`, and `best_ns(repeat, prepare,
//! work)`, the least time of `work`.
template <class Device, class Codec>
run_outcome run_exchange(Device const& device,
                         Codec const& codec,
                         std::vector<std::vector<float>> const& gradients,
                         std::vector<layer> const& layers,
                         run_settings const& settings)
{
  using namespace tersum;
  std::vector<tensor> tensors;
  constexpr bool in_matrices = sorting<Codec> || factors_metric<Codec>;
  if constexpr (is_low_rank<Codec> || nesting<Codec> || in_matrices) {
    if (layers.empty()) { return {{}, "needs layers.csv, which names the matrices"}; }
    for (layer const& l : layers) {
      tensors.push_back({.name = l.name, .rows = l.rows, .columns = l.columns, .offset = l.offset});
    }
  }
  std::size_t const n = gradients.size();
  std::size_t const d = gradients[0].size();

  std::vector<typename Device::buffer> memory;
  using rank_type = std::conditional_t<ending_in_shards<Codec>,
                                       loopback_shard<Codec, float>,
                                       loopback_rank<Codec, float>>;
  std::vector<rank_type> ranks;
  auto const fail = [](status const& s) { return run_outcome{{}, std::string(s.message)}; };
  for (std::size_t k = 0; k < n; ++k) {
    // Vectors bypass low rank alone.
    layout const bucket{.coordinates = d, .tensors = tensors, .bypass_vectors = !in_matrices};
    auto const plan =
      codec.plan(bucket, world{.size = static_cast<int>(n), .rank = static_cast<int>(k)});
    if (auto const s = plan.check(); !s.ok()) { return fail(s); }
    std::size_t const first = memory.size();
    memory.push_back(device.allocate(d * sizeof(float)));
    memory.push_back(device.allocate(plan.state_bytes()));
    memory.push_back(device.allocate(plan.workspace_bytes()));
    std::span<float> const gradient{reinterpret_cast<float*>(memory[first].data()), d};
    std::span const state{memory[first + 1].data(), plan.state_bytes()};
    std::span const workspace{memory[first + 2].data(), plan.workspace_bytes()};
    if constexpr (ending_in_shards<Codec>) {
      memory.push_back(device.allocate(plan.shard_size() * sizeof(float)));
      std::span<float> const shard{reinterpret_cast<float*>(memory.back().data()),
                                   plan.shard_size()};
      ranks.push_back({plan, gradient, shard, state, workspace});
    } else {
      ranks.push_back({plan, gradient, state, workspace});
    }
    if (auto const s = initialize(device.executor, plan, ranks[k].state, 20241118); !s.ok()) {
      return fail(s);
    }
  }

  measurement out;
  out.bits_per_coordinate = ranks[0].plan.bits_per_coordinate();
  out.ranks_identical     = true;
  measured_estimates measured(gradients, settings.steps);
  std::vector<float> first_rank(d), other_rank(d);
  for (int step = 0; step < settings.steps; ++step) {
    for (std::size_t k = 0; k < n; ++k) {
      device.upload(ranks[k].gradient.data(), gradients[k].data(), d * sizeof(float));
    }
    std::span<rank_type const> const all{ranks};
    if constexpr (ending_in_shards<Codec>) {
      if (auto const s = loopback_reduce_scatter_mean(device.executor, all); !s.ok()) {
        return fail(s);
      }
      // No coordinate is on two ranks.
      float* to = first_rank.data();
      for (auto const& r : ranks) {
        device.download(to, r.shard.data(), r.shard.size_bytes());
        to += r.shard.size();
      }
    } else {
      if (auto const s = loopback_all_reduce_mean(device.executor, all, reduction_order::ring);
          !s.ok()) {
        return fail(s);
      }
      device.download(first_rank.data(), ranks[0].gradient.data(), d * sizeof(float));
      for (std::size_t k = 1; k < n; ++k) {
        device.download(other_rank.data(), ranks[k].gradient.data(), d * sizeof(float));
        out.ranks_identical =
          out.ranks_identical &&
          std::memcmp(first_rank.data(), other_rank.data(), d * sizeof(float)) == 0;
      }
    }
    measured.add(first_rank);
  }
  measured.report(layers, out);

  auto const& one                = ranks[0];
  std::size_t const record_bytes = one.plan.tensors() * sizeof(tensor_record);
  std::vector<tensor_record> records(one.plan.tensors());
  device.download(records.data(), one.state.data() + one.plan.records_offset(), record_bytes);
  double saturated = 0;
  for (auto const& record : records) { saturated += static_cast<double>(record.saturated); }
  out.saturated_fraction = std::numeric_limits<double>::quiet_NaN();
  if constexpr (detail::has_steps<Codec>) {
    double const lanes = static_cast<double>(one.plan.chunks()) * Codec::chunk_size;
    if (saturates<Codec>) { out.saturated_fraction = lanes == 0 ? 0 : saturated / lanes; }
  }

  // Times of one rank's work. They come last, so that what they do to the state is without effect.
  auto const upload = [&] {
    device.upload(one.gradient.data(), gradients[0].data(), d * sizeof(float));
  };
  status broken{};
  auto const keep = [&](status const& s) {
    if (!s.ok()) { broken = s; }
  };
  if constexpr (sorting<Codec>) {
    auto const view = [](auto const& r) {
      return loopback_rank<typename Codec::inner_type, float>{r.plan.inner(),
                                                              r.plan.sorted(r.workspace),
                                                              r.plan.inner_state(r.state),
                                                              r.plan.inner_workspace(r.workspace)};
    };
    time_parts(
      device,
      view(one),
      view(ranks[n - 1]),
      settings,
      [&] {
        upload();
        keep(measure_lines(device.executor, one.plan, one.gradient, one.state, one.workspace));
      },
      keep,
      out);
    auto const sort = [&] {
      keep(measure_lines(device.executor, one.plan, one.gradient, one.state, one.workspace));
      keep(sort_matrices(device.executor, one.plan, one.gradient, one.state, one.workspace));
    };
    out.encode_ns += device.best_ns(settings.repeat, upload, sort);
    out.decode_ns += device.best_ns(settings.repeat, sort, [&] {
      keep(restore_matrices(device.executor, one.plan, one.gradient, one.state, one.workspace));
    });
  } else {
    time_parts(device, one, ranks[n - 1], settings, upload, keep, out);
  }
  auto const target = device.allocate(d * sizeof(float));
  out.memcpy_ns     = device.best_ns(settings.repeat, upload, [&] {
    device.copy(target.data(), one.gradient.data(), d * sizeof(float));
  });
  if (!broken.ok()) { return fail(broken); }
  return {out, {}};
}

}  // namespace compare_codecs
