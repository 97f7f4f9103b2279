// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances of sharded and values codecs, whose machine code budgets_rest.json limits.

#include "compile.hpp"

#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/execute/detail/cuda_kernels.cuh>
#include <tersum/feedback/kept_in.hpp>
#include <tersum/presets.hpp>
#include <tersum/sharded_presets.hpp>

using namespace tersum;

void compile_shards()
{
  using codec = codec_of<presets::sharded_4>;
  compile(&detail::exchange_kernel<detail::initialize_shards_kernel, codec, float>,
          &detail::exchange_kernel<detail::share_cut_kernel, codec, float>,
          &detail::exchange_kernel<detail::add_shard_kernel, codec, float>);
  using in_halves = codec_of<presets::sharded_half>;
  compile(&detail::chunk_kernel<detail::encode_parts_kernel<false>, in_halves, float>,
          &detail::exchange_kernel<detail::add_shard_kernel, in_halves, float>);
  using summed = codec_of<presets::summed_shards_sat4>;
  compile(&detail::exchange_kernel<detail::tell_ratios_kernel, summed, float>);
}

void compile_values()
{
  using kept       = codec_of<presets::values_4_ef>;
  using difference = codec_of<presets::differences_4>;
  compile(&detail::exchange_kernel<detail::recall_kernel, kept, float>,
          &detail::exchange_kernel<detail::publish_kernel<false>, kept, float>,
          &detail::exchange_kernel<detail::publish_kernel<true>, kept, float>,
          &detail::exchange_kernel<detail::keep_published_kernel<false>, kept, float>,
          &detail::exchange_kernel<detail::keep_published_kernel<true>, kept, float>,
          &detail::exchange_kernel<detail::recall_kernel, difference, float>,
          &detail::exchange_kernel<detail::publish_kernel<false>, difference, float>,
          &detail::exchange_kernel<detail::publish_kernel<true>, difference, float>);
  using in_halves = codec_of<presets::values_half>;
  compile(&detail::exchange_kernel<detail::publish_kernel<false>, in_halves, float>,
          &detail::chunk_kernel<detail::decode_parts_kernel<false>, in_halves, float>);
}
