// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange of chunks as launches of kernels, the same for a device and its emulator.
//!
//! `run_stage(stage, launch_list)` is the stage on an executor that launches, found by its arguments: codecs with stages of
//! their own bring overloads along.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/stages.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! Fills header, records and chunks.
void initialize_records(launching auto& launches, std::uint64_t seed)
{
  using codec      = codec_of<decltype(launches)>;
  auto const& plan = launches.plan();
  launches.clear_state();
  initialize_kernel kernel{{}, {}, seed, plan.coordinates(), plan.state_fingerprint()};
  if constexpr (in_shards<codec>) {
    auto const ranks = static_cast<std::uint32_t>(plan.ranks().size);
    initialize_shards_kernel shards{};
    plan.for_each_shard([&](shard_record const& record) {
      shards.batch.records[shards.batch.count++] = record;
      if (shards.batch.count == shard_batch::capacity ||
          shards.batch.first + shards.batch.count == ranks) {
        launches(shards, 1);
        shards.batch.first += shards.batch.count;
        shards.batch.count = 0;
      }
    });
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
}

[[nodiscard]] status run_stage(stage::initialize const& stage, launching auto& launches)
{
  initialize_records(launches, stage.seed);
  return launches.result();
}

//! The state is in memory of the device, which is not read back.
[[nodiscard]] status run_stage(stage::open, launching auto&) { return {}; }

[[nodiscard]] status run_stage(stage::recall, launching auto& launches)
{
  launches.threads(recall_kernel{}, launches.plan().shard_size());
  return launches.result();
}

[[nodiscard]] status run_stage(stage::gather_bypass, launching auto& launches)
{
  launches.bypass(bypass_kernel<true>{}, launches.plan().own_bypassed());
  return launches.result();
}

[[nodiscard]] status run_stage(stage::measure, launching auto& launches)
{
  using codec = codec_of<decltype(launches)>;
  if constexpr (measures_plainly<codec>) {
    launches.template chunks<measure_kernel>();
  } else if constexpr (measures_magnitudes<codec>) {
    launches.template chunks<magnitudes_kernel>();
  }
  if constexpr (measures_norms<codec>) { launches.norms(); }
  if constexpr (adds_norms<codec>) { launches.tensors(tensor_norms_kernel{}); }
  if constexpr (tells_ratios<codec>) {
    launches.threads(tell_ratios_kernel{}, launches.plan().tensors());
  }
  return launches.result();
}

//! One launch; one more where energies count in units of their tensor's.
[[nodiscard]] status run_stage(stage::select, launching auto& launches)
{
  launches.select();
  return launches.result();
}

[[nodiscard]] status run_stage(stage::derive_steps, launching auto& launches)
{
  if (!launches.derives_late()) { launches.threads(steps_kernel{}, launches.plan().chunks()); }
  return launches.result();
}

[[nodiscard]] status run_stage(stage::encode, launching auto& launches)
{
  launches.encode();
  return launches.result();
}

[[nodiscard]] status run_stage(stage::recompress, launching auto& launches)
{
  auto const& args = launches.args();
  if (launches.plan().part_bytes() == 0) { return {}; }
  launches.clear_rests(args.parts.gathered, args.rank, 1, [&] { return make_mean_map(args); });
  if constexpr (owner_feeds_back<codec_of<decltype(launches)>>) {
    launches.template owned_in_metric<recompress_kernel, recompress_in_rows_kernel>();
  } else {
    launches.owned(recompress_kernel{});
  }
  return launches.result();
}

//! Its flag stops residuals that move while a payload is decoded, so it comes before that.
[[nodiscard]] status run_stage(stage::return_bypass, launching auto& launches)
{
  launches.bypass(bypass_kernel<false>{}, launches.plan().bypassed());
  return launches.result();
}

[[nodiscard]] status run_stage(stage::decode, launching auto& launches)
{
  launches.decode();
  return launches.result();
}

[[nodiscard]] status run_stage(stage::finish, launching auto& launches)
{
  if (adds_up_at_end<codec_of<decltype(launches)>>) {
    launches.tensors(finish_kernel{});
  } else {
    launches(finish_kernel{}, 1);
  }
  return launches.result();
}

}  // namespace tersum::inline v0::detail
