// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances of sharded and values codecs, whose machine code budgets_rest.json limits.

#include "compile.hpp"

#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/execute/detail/cuda_kernels.cuh>
#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/presets.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/rotate/no_rotation.hpp>

using namespace tersum;

void compile_shards()
{
  using codec = codec_of<presets::sharded_4>;
  compile(&detail::exchange_kernel<detail::initialize_shards_kernel, codec, float>,
          &detail::exchange_kernel<detail::share_cut_kernel, codec, float>,
          &detail::exchange_kernel<detail::add_shard_kernel<false>, codec, float>);
  using in_halves = tersum::codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>, shard>;
  compile(&detail::chunk_kernel<detail::encode_parts_kernel<false>, in_halves, float>,
          &detail::exchange_kernel<detail::add_shard_kernel<false>, in_halves, float>);
  using summed = codec_of<presets::summed_shards_sat4>;
  compile(&detail::exchange_kernel<detail::tell_ratios_kernel, summed, float>);
}

void compile_values()
{
  using kept       = presets::values<4, error_feedback>;
  using difference = presets::values<4, difference_feedback>;
  compile(&detail::exchange_kernel<detail::recall_kernel, kept, float>,
          &detail::exchange_kernel<detail::publish_kernel<false>, kept, float>,
          &detail::exchange_kernel<detail::publish_kernel<true>, kept, float>,
          &detail::exchange_kernel<detail::keep_published_kernel<false>, kept, float>,
          &detail::exchange_kernel<detail::keep_published_kernel<true>, kept, float>,
          &detail::exchange_kernel<detail::recall_kernel, difference, float>,
          &detail::exchange_kernel<detail::publish_kernel<false>, difference, float>,
          &detail::exchange_kernel<detail::publish_kernel<true>, difference, float>);
  using in_halves = tersum::codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>, publish>;
  compile(&detail::exchange_kernel<detail::publish_kernel<false>, in_halves, float>,
          &detail::chunk_kernel<detail::decode_parts_kernel<false>, in_halves, float>);
}
