// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange of chunks as launches of kernels, the same for a device and its emulator.
//!
//! `run_stage(stage, launch_list)` is the stage on an executor that launches, found by its arguments: codecs with stages of
//! their own bring overloads along.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/lowrank/detail/low_rank_launches.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

[[nodiscard]] status run_stage(stage::initialize const& stage, launching auto& launches)
{
  using codec      = codec_of<decltype(launches)>;
  auto const& plan = launches.plan();
  auto const& args = launches.args();
  if constexpr (feeds_back<codec>) { launches.clear(args.residual, plan.coordinates()); }
  if constexpr (scattering<codec>) {
    if (owner_feeds_back<codec>) {
      launches.clear(args.parts.owner_residual, plan.owned_chunks() * codec::chunk_size);
    }
  }
  initialize_kernel kernel{{}, {}, stage.seed, plan.coordinates(), plan.state_fingerprint()};
  if constexpr (sharding<codec>) {
    auto const ranks = static_cast<std::uint32_t>(plan.ranks().size);
    initialize_shards_kernel shards{};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      shards.batch.records[shards.batch.count++] = plan.shard(static_cast<int>(rank));
      if (shards.batch.count == shard_batch::capacity || rank + 1 == ranks) {
        launches(shards, 1);
        shards.batch.first += shards.batch.count;
        shards.batch.count = 0;
      }
    }
  }
  unsigned filled  = 0;
  auto const flush = [&] {
    launches(kernel, maximum(filled, 1u));
    kernel.batch.first += filled;
    filled = 0;
  };
  plan.for_each_record([&](tensor_record const& record) {
    kernel.batch.records[filled++] = record;
    if (filled == record_batch::capacity) { flush(); }
  });
  if (filled > 0 || plan.tensors() == 0) { flush(); }
  return launches.result();
}

//! The state is in memory of the device, which is not read back.
[[nodiscard]] status run_stage(stage::open, launching auto&) { return {}; }

[[nodiscard]] status run_stage(stage::gather_bypass, launching auto& launches)
{
  launches.bypass(bypass_kernel<true>{});
  return launches.result();
}

[[nodiscard]] status run_stage(stage::measure, launching auto& launches)
{
  using codec = codec_of<decltype(launches)>;
  if constexpr (!has_steps<codec>) {
    launches.norms();
  } else {
    using range = typename codec::range_type;
    if constexpr (!has_measurement<range>) {
      launches.template chunks<measure_kernel>();
    } else if constexpr (measures<range, statistic::chunk_magnitude>) {
      launches.template chunks<magnitudes_kernel>();
    }
    if constexpr (norms_travel<codec> || per_tensor<codec> || tracks<codec>) { launches.norms(); }
    if constexpr (!norms_travel<codec> && (per_tensor<codec> || tracks<codec>)) {
      launches(tensor_norms_kernel{}, launches.plan().tensors());
    }
  }
  return launches.result();
}

//! One launch for up to 2^17 chunks, six beyond.
[[nodiscard]] status run_stage(stage::select, launching auto& launches)
{
  launches.select();
  return launches.result();
}

[[nodiscard]] status run_stage(stage::derive_steps, launching auto& launches)
{
  launches.threads(steps_kernel{}, launches.plan().chunks());
  return launches.result();
}

[[nodiscard]] status run_stage(stage::encode, launching auto& launches)
{
  using codec = codec_of<decltype(launches)>;
  if constexpr (has_parts<codec>) {
    launches.encode_parts();
  } else if constexpr (has_steps<codec>) {
    launches.template chunks<encode_kernel>();
  } else {
    launches.template cast<true>();
  }
  return launches.result();
}

[[nodiscard]] status run_stage(stage::recompress, launching auto& launches)
{
  auto const& args = launches.args();
  if (launches.plan().part_bytes() == 0) { return {}; }
  if (args.parts.recompressed.begin == 0) {
    launches(clear_parts_kernel{{}, args.parts.gathered, args.rank}, 1);
  }
  launches.owned(recompress_kernel{});
  return launches.result();
}

//! Its flag stops residuals that move while a payload is decoded, so it comes before that.
[[nodiscard]] status run_stage(stage::return_bypass, launching auto& launches)
{
  launches.bypass(bypass_kernel<false>{});
  return launches.result();
}

[[nodiscard]] status run_stage(stage::decode, launching auto& launches)
{
  using codec = codec_of<decltype(launches)>;
  if constexpr (sharding<codec>) {
    launches.owned(add_shard_kernel{});
  } else if constexpr (has_parts<codec>) {
    launches.decode_parts();
  } else if constexpr (has_steps<codec>) {
    launches.template chunks<decode_kernel>();
  } else {
    launches.template cast<false>();
  }
  return launches.result();
}

[[nodiscard]] status run_stage(stage::finish, launching auto& launches)
{
  launches(finish_kernel{}, maximum(launches.plan().tensors(), std::uint64_t{1}));
  return launches.result();
}

}  // namespace tersum::inline v0::detail
