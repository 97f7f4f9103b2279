// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One codec on one device: exchanges through a loopback all-reduce, errors and times.

#pragma once

#include "codecs.hpp"

#include <tersum/baseline/presets.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/presets.hpp>
#include <tersum/sharded_presets.hpp>
#include <tersum/single_process/loopback.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace compare_codecs {

//! @brief |mean - estimate|^2 / |mean|^2.
inline double error_of(std::vector<double> const& mean, std::vector<double> const& estimate)
{
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    lost += (mean[i] - estimate[i]) * (mean[i] - estimate[i]);
    all += mean[i] * mean[i];
  }
  return all == 0 ? (lost == 0 ? 0 : std::numeric_limits<double>::infinity()) : lost / all;
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
  if constexpr (is_low_rank<Codec> || nesting<Codec>) {
    if (layers.empty()) { return {{}, "needs layers.csv, which names the matrices"}; }
    for (layer const& l : layers) {
      tensors.push_back({.name = l.name, .rows = l.rows, .columns = l.columns, .offset = l.offset});
    }
  }
  std::size_t const n = gradients.size();
  std::size_t const d = gradients[0].size();
  std::vector<double> mean(d);
  for (auto const& gradient : gradients) {
    for (std::size_t i = 0; i < d; ++i) { mean[i] += gradient[i] / static_cast<double>(n); }
  }

  std::vector<typename Device::buffer> memory;
  using rank_type =
    std::conditional_t<sharding<Codec>, loopback_shard<Codec, float>, loopback_rank<Codec, float>>;
  std::vector<rank_type> ranks;
  auto const fail = [](status const& s) { return run_outcome{{}, std::string(s.message)}; };
  for (std::size_t k = 0; k < n; ++k) {
    auto const plan = codec.plan(layout{d, tensors},
                                 world{.size = static_cast<int>(n), .rank = static_cast<int>(k)});
    if (auto const s = plan.check(); !s.ok()) { return fail(s); }
    std::size_t const first = memory.size();
    memory.push_back(device.allocate(d * sizeof(float)));
    memory.push_back(device.allocate(plan.state_bytes()));
    memory.push_back(device.allocate(plan.workspace_bytes()));
    std::span<float> const gradient{reinterpret_cast<float*>(memory[first].data()), d};
    std::span const state{memory[first + 1].data(), plan.state_bytes()};
    std::span const workspace{memory[first + 2].data(), plan.workspace_bytes()};
    if constexpr (sharding<Codec>) {
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
  std::vector<double> average(d), estimate(d);
  std::vector<float> first_rank(d), other_rank(d);
  for (int step = 0; step < settings.steps; ++step) {
    for (std::size_t k = 0; k < n; ++k) {
      device.upload(ranks[k].gradient.data(), gradients[k].data(), d * sizeof(float));
    }
    std::span<rank_type const> const all{ranks};
    if constexpr (sharding<Codec>) {
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
    for (std::size_t i = 0; i < d; ++i) {
      estimate[i] = first_rank[i];
      average[i] += estimate[i] / settings.steps;
    }
    out.nmse = error_of(mean, estimate);
    if (step == 0) { out.nmse_first_step = out.nmse; }
  }
  out.nmse_of_mean = error_of(mean, average);

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
  auto const run_encode = [&] {
    if constexpr (nesting<Codec>) {
      // Factors are encoded and decoded before the others are made of them: all counts as encoding.
      keep(all_reduce_mean(
        device.executor, one.plan, one.gradient, one.state, one.workspace, [](auto const&) {}));
    } else {
      keep(measure(device.executor, one.plan, one.gradient, one.state, one.workspace));
      keep(encode(device.executor, one.plan, one.gradient, one.state, one.workspace));
    }
  };
  out.encode_ns = device.best_ns(settings.repeat, upload, run_encode);
  if constexpr (nesting<Codec>) {
    out.decode_ns = out.reduce_ns = std::numeric_limits<double>::quiet_NaN();
  } else {
    out.decode_ns = device.best_ns(settings.repeat, run_encode, [&] {
      if constexpr (sharding<Codec>) {
        keep(decode_shard(device.executor, one.plan, one.shard, one.state, one.workspace));
      } else {
        keep(decode(device.executor, one.plan, one.gradient, one.state, one.workspace));
      }
    });
  }
  if constexpr (scattering<Codec>) {
    out.reduce_ns = device.best_ns(settings.repeat, run_encode, [&] {
      keep(recompress(device.executor, one.plan, one.gradient, one.state, one.workspace));
    });
  } else if constexpr (sharding<Codec> || copying<Codec>) {
    out.reduce_ns = std::numeric_limits<double>::quiet_NaN();  // added as they are decoded
  } else if constexpr (!gathering<Codec> && !nesting<Codec>) {
    // A ring reduce-scatter has each rank add (n - 1) / n of the payload.
    auto const payload       = payload_wire(one.plan, one.workspace);
    std::size_t const shares = payload.count / n * (n - 1);
    out.reduce_ns            = device.best_ns(settings.repeat, run_encode, [&] {
      auto const other = payload_wire(ranks[n - 1].plan, ranks[n - 1].workspace);
      keep(device.executor.reduce(payload.op, payload.data, other.data, payload.data, shares));
    });
  }
  auto const target = device.allocate(d * sizeof(float));
  out.memcpy_ns     = device.best_ns(settings.repeat, upload, [&] {
    device.copy(target.data(), one.gradient.data(), d * sizeof(float));
  });
  if (!broken.ok()) { return fail(broken); }
  return {out, {}};
}

//! @brief The same coordinates of all ranks in a random order: neighbours have nothing to do with each other.
inline std::vector<std::vector<float>> permute(std::vector<std::vector<float>> const& gradients)
{
  std::vector<std::size_t> order(gradients[0].size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937{20241118});
  auto permuted = gradients;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    for (std::size_t i = 0; i < order.size(); ++i) { permuted[k][i] = gradients[k][order[i]]; }
  }
  return permuted;
}

//! @name Codecs by name
//! `visit` is called with the name, a summary and the codec. In groups, which are compiled apart.
//! @{
//! Codecs whose payload is summed.
template <class Visitor>
void for_each_summed_codec(Visitor visit)
{
  namespace p = tersum::presets;
  visit("fp32", "float32, summed natively", p::fp32);
  visit("fp16", "half precision, summed natively: the baseline", p::fp16);
  visit("bf16", "bfloat16, summed natively", p::bf16);
  visit("thc_wide4", "THC: full rotation, 4-bit codes in 8-bit lanes, exact sums", p::thc_wide4);
  visit(
    "thc_wide4_partial", "the same with rotated chunks and a range for each", p::thc_wide4_partial);
  visit("thc_wide4_unrotated", "the same without rotation", p::thc_wide4_unrotated);
  visit("thc_lookup4", "THC with a table of 16 levels, exact sums in 8 bits", p::thc_lookup4);
  visit("thc_sat2", "THC with saturation as published, 2 bits", p::thc_sat2);
  visit("thc_sat4", "THC with saturation as published, 4 bits", p::thc_sat4);
  visit("thc_sat8", "THC with saturation as published, 8 bits", p::thc_sat8);
  visit("rotated_sat2",
        "rotated, tracked head-room, stratified, 2-bit saturating sum",
        p::rotated_sat2);
  visit("rotated_sat4",
        "rotated, tracked head-room, stratified, 4-bit saturating sum",
        p::rotated_sat4);
  visit("rotated_sat8",
        "rotated, tracked head-room, stratified, 8-bit saturating sum",
        p::rotated_sat8);
  visit("rotated_sat2_ef", "rotated_sat2, to nearest, with error feedback", p::rotated_sat2_ef);
  visit("rotated_sat4_ef", "rotated_sat4, to nearest, with error feedback", p::rotated_sat4_ef);
  visit("rotated_sat8_ef", "rotated_sat8, to nearest, with error feedback", p::rotated_sat8_ef);
}

//! Codecs that choose what travels.
template <class Visitor>
void for_each_choosing_codec(Visitor visit)
{
  namespace p = tersum::presets;
  visit("topk_b05", "TopK, gathered: each rank's largest coordinates, 0.5 bits", p::topk_b05);
  visit("topk_b2", "the same, 2 bits", p::topk_b2);
  visit("topk_b8", "the same, 8 bits", p::topk_b8);
  visit("topk_b05_ef", "topk_b05 with error feedback", p::topk_b05_ef);
  visit("topk_b2_ef", "topk_b2 with error feedback", p::topk_b2_ef);
  visit("topk_b8_ef", "topk_b8 with error feedback", p::topk_b8_ef);
  visit("topkc_b05", "TopKC: chunks of the largest norms as halves, 0.5 bits", p::topkc_b05);
  visit("topkc_b2", "the same, 2 bits", p::topkc_b2);
  visit("topkc_b8", "the same, 8 bits", p::topkc_b8);
  visit("topkc_b05_permuted", "topkc_b05 of permuted gradients: without locality", p::topkc_b05);
  visit("topkc_b2_permuted", "topkc_b2 of permuted gradients", p::topkc_b2);
  visit("topkc_b8_permuted", "topkc_b8 of permuted gradients", p::topkc_b8);
  visit("topkc_b05_ef", "topkc_b05 with error feedback", p::topkc_b05_ef);
  visit("topkc_b2_ef", "topkc_b2 with error feedback", p::topkc_b2_ef);
  visit("topkc_b8_ef", "topkc_b8 with error feedback", p::topkc_b8_ef);
  visit("randomkc_b2", "random chunks as halves, 2 bits", p::randomkc_b2);
  visit("randomkc_b2_ef", "randomkc_b2 with error feedback", p::randomkc_b2_ef);
  visit("topkc_sat4", "TopKC in rotated 4-bit saturating codes, 2 bits", p::topkc_sat4);
  visit("topkc_sat4_ef", "topkc_sat4, to nearest, with error feedback", p::topkc_sat4_ef);
  visit("allocated_sat_2",
        "rotated, 0, 2, 4 or 8 bits for each chunk by its norm, saturating sums, 2 bits",
        p::allocated_sat_2);
  visit("allocated_sat_3", "the same, 3 bits", p::allocated_sat_3);
  visit("allocated_sat_4", "the same, 4 bits", p::allocated_sat_4);
  visit("allocated_sat_8", "the same, chunks of 1024, 8 bits", p::allocated_sat_8);
  visit("balanced_sat_2", "allocated_sat_2, energies weighted by 1/4", p::balanced_sat_2);
  visit("balanced_sat_4", "allocated_sat_4, energies weighted by 1/4", p::balanced_sat_4);
  visit("allocated_sat_2_ef", "allocated_sat_2, to nearest, with feedback", p::allocated_sat_2_ef);
  visit("allocated_sat_3_ef", "allocated_sat_3, to nearest, with feedback", p::allocated_sat_3_ef);
  visit("allocated_sat_4_ef", "allocated_sat_4, to nearest, with feedback", p::allocated_sat_4_ef);
  visit("balanced_sat_2_ef", "balanced_sat_2, to nearest, with feedback", p::balanced_sat_2_ef);
  visit("balanced_sat_4_ef", "balanced_sat_4, to nearest, with feedback", p::balanced_sat_4_ef);
}

//! Codecs that send factors of matrices.
template <class Visitor>
void for_each_low_rank_codec(Visitor visit)
{
  namespace p = tersum::presets;
  visit("powersgd_r1", "PowerSGD: factors of rank 1, two rounds, feedback", p::powersgd_r1);
  visit("powersgd_r4", "the same, rank 4", p::powersgd_r4);
  visit("powersgd_r16", "the same, rank 16", p::powersgd_r16);
  visit("powersgd_r64", "the same, rank 64", p::powersgd_r64);
  visit("acp_r1", "one factor of rank 1 a step, in turns (ACP-SGD), feedback", p::acp_r1);
  visit("acp_r4", "the same, rank 4", p::acp_r4);
  visit("acp_r16", "the same, rank 16", p::acp_r16);
  visit("acp_r64", "the same, rank 64", p::acp_r64);
  visit("powersgd_r4_sat8", "powersgd_r4, factors in codes of rotated_sat8", p::powersgd_r4_sat8);
  visit("powersgd_r16_sat8", "the same, rank 16", p::powersgd_r16_sat8);
  visit("powersgd_r16_two_shot_8",
        "powersgd_r16, factors in codes of two_shot_8",
        p::powersgd_r16_two_shot_8);
  visit("acp_r16_sat8", "acp_r16, its factor in codes of rotated_sat8", p::acp_r16_sat8);
}

//! Codecs whose codes are decoded, added and encoded again: by the owners of parts, or at every hop of the all-reduce.
template <class Visitor>
void for_each_two_shot_codec(Visitor visit)
{
  namespace p = tersum::presets;
  visit("two_shot_1", "rotated, Lloyd-Max codes of 1 bit, added by owners of parts", p::two_shot_1);
  visit("two_shot_2", "the same, 2 bits", p::two_shot_2);
  visit("two_shot_3", "the same, 3 bits", p::two_shot_3);
  visit("two_shot_4", "the same, 4 bits", p::two_shot_4);
  visit("two_shot_8", "the same, 8 bits", p::two_shot_8);
  visit("two_shot_2_ef", "two_shot_2 with error feedback on ranks and owners", p::two_shot_2_ef);
  visit("two_shot_4_ef", "two_shot_4 with error feedback on ranks and owners", p::two_shot_4_ef);
  visit("sharded_1", "two_shot_1's codes, added by the ranks whose shards they are", p::sharded_1);
  visit("sharded_2", "the same, 2 bits", p::sharded_2);
  visit("sharded_3", "the same, 3 bits", p::sharded_3);
  visit("sharded_4", "the same, 4 bits", p::sharded_4);
  visit("gathered_2", "two_shot_2's codes, gathered and added by every rank", p::gathered_2);
  visit("gathered_4", "the same, 4 bits", p::gathered_4);
  visit("gathered_2_ef", "gathered_2 with error feedback", p::gathered_2_ef);
  visit(
    "per_hop_2", "two_shot_2, but added and encoded again at every hop of a ring", p::per_hop_2);
  visit("per_hop_3", "the same, 3 bits", p::per_hop_3);
  visit("per_hop_4", "the same, 4 bits", p::per_hop_4);
  visit("per_hop_4_ef", "per_hop_4 with error feedback on the ranks", p::per_hop_4_ef);
  visit("allocated_2", "two-shot, 0 to 8 bits for each chunk by its norm, 2 bits", p::allocated_2);
  visit("allocated_3", "the same, 3 bits", p::allocated_3);
  visit("allocated_4", "the same, 4 bits", p::allocated_4);
  visit("balanced_1", "the same, energies weighted by 1/4, 1 bit", p::balanced_1);
  visit("balanced_2", "the same, 2 bits", p::balanced_2);
  visit("balanced_3", "the same, 3 bits", p::balanced_3);
  visit("allocated_2_ef", "allocated_2 with error feedback on the ranks", p::allocated_2_ef);
  visit("blocks_4", "4 bits in blocks of 32 with scales of their own, as MX formats", p::blocks_4);
  visit("blocks_8", "the same, 8 bits", p::blocks_8);
  visit("dynamiq_4", "DynamiQ: 2, 4 or 8 bits for blocks of 16, 4 bits on average", p::dynamiq_4);
  visit("dynamiq_5", "the same, 5 bits", p::dynamiq_5);
  visit("dynamiq_hop_4",
        "dynamiq_4, but added and encoded again at every hop of a ring",
        p::dynamiq_hop_4);
  visit("dynamiq_hop_5", "the same, 5 bits", p::dynamiq_hop_5);
}

//! All of them.
template <class Visitor>
void for_each_codec(Visitor visit)
{
  for_each_summed_codec(visit);
  for_each_choosing_codec(visit);
  for_each_low_rank_codec(visit);
  for_each_two_shot_codec(visit);
}
//! @}

//! What `run_named` says of a name that is not in its group.
inline constexpr std::string_view no_such_codec = "there is no such codec";

//! The codecs of one group on the CPU: arguments as those of `run_codec`.
using run_group = decltype(run_codec);
run_group run_summed, run_choosing, run_low_rank, run_two_shot;

//! @brief Runs the codec of that name on a device.
//! @param for_each  One of the above: which codecs are looked at.
template <class Device, class ForEach>
run_outcome run_named(Device const& device,
                      ForEach const& for_each,
                      std::string_view name,
                      std::vector<std::vector<float>> const& gradients,
                      std::vector<layer> const& layers,
                      run_settings const& settings)
{
  run_outcome outcome{{}, std::string{no_such_codec}};
  for_each([&](std::string_view candidate, std::string_view, auto const& codec) {
    if (candidate != name) { return; }
    // Errors do not depend on the order of the coordinates, so nothing has to be put back.
    outcome = name.ends_with("_permuted")
                ? run_exchange(device, codec, permute(gradients), layers, settings)
                : run_exchange(device, codec, gradients, layers, settings);
  });
  return outcome;
}

}  // namespace compare_codecs
