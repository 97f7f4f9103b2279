// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances of codecs in a metric, whose machine code budgets limit.

#include "compile.hpp"

#include <tersum/tersum.cuh>

namespace {

using namespace tersum;

using in_lanes =
  codec<fixed_chunks<1024>,
        partial_hadamard<1024>,
        summed_codes<rms_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>>,
        in_wire,
        no_feedback,
        kept_diagonal>;
using feeding_back = codec<fixed_chunks<1024>,
                           partial_hadamard<1024>,
                           scaled_codes<lloyd_max<2>>,
                           two_shot,
                           error_feedback,
                           kept_diagonal>;

using shards = codec<fixed_chunks<1024>,
                     partial_hadamard<1024>,
                     scaled_codes<lloyd_max<2>>,
                     shard,
                     no_feedback,
                     given_diagonal>;

using kept_casts =
  codec<top_chunks<128>, no_rotation, cast<tersum::half>, in_wire, error_feedback, kept_diagonal>;
using given_casts =
  codec<top_chunks<128>, no_rotation, cast<tersum::half>, in_wire, no_feedback, given_diagonal>;

}  // namespace

void compile_values_in_metric()
{
  using kept       = codec<fixed_chunks<1024>,
                     partial_hadamard<1024>,
                     scaled_codes<lloyd_max<2>>,
                     publish,
                     error_feedback,
                     kept_diagonal>;
  using difference = codec<fixed_chunks<1024>,
                           partial_hadamard<1024>,
                           scaled_codes<lloyd_max<2>>,
                           publish,
                           difference_feedback,
                           given_diagonal>;
  compile(&detail::exchange_kernel<detail::publish_kernel<false>, kept, float>,
          &detail::exchange_kernel<detail::publish_kernel<true>, kept, float>,
          &detail::exchange_kernel<detail::keep_published_kernel<false>, kept, float>,
          &detail::chunk_kernel<detail::decode_parts_kernel<false>, kept, float>,
          &detail::chunk_kernel<detail::decode_parts_kernel<false>, difference, float>);
}

void compile_metric()
{
  using two_shot = codec_of<presets::metric_2>;
  compile(&detail::chunk_kernel<detail::scaled_norms_kernel<false>, in_lanes, float>,
          &detail::chunk_kernel<detail::encode_kernel<false>, in_lanes, float>,
          &detail::chunk_kernel<detail::decode_kernel<false>, in_lanes, float>,
          &detail::chunk_kernel<detail::encode_parts_kernel<false>, two_shot, float>,
          &detail::chunk_kernel<detail::encode_parts_kernel<false>, two_shot, bfloat16>,
          &detail::chunk_kernel<detail::decode_parts_kernel<false>, two_shot, float>,
          &detail::chunk_kernel<detail::keep_residual_kernel<false>, feeding_back, float>,
          &detail::exchange_kernel<detail::recompress_kernel<false>, feeding_back, float>,
          &detail::exchange_kernel<detail::keep_owner_residual_kernel<false>, feeding_back, float>,
          &detail::exchange_kernel<detail::recompress_kernel<true>, feeding_back, float>,
          &detail::exchange_kernel<detail::keep_owner_residual_kernel<true>, feeding_back, float>,
          &detail::exchange_kernel<detail::add_shard_kernel<true>, shards, float>,
          &detail::chunk_kernel<detail::encode_scaled_casts_kernel<false>, kept_casts, float>,
          &detail::chunk_kernel<detail::decode_scaled_casts_kernel<false>, kept_casts, float>,
          &detail::exchange_kernel<detail::inspect_scaled_casts_kernel, kept_casts, float>,
          &detail::chunk_kernel<detail::encode_scaled_casts_kernel<false>, given_casts, float>,
          &detail::chunk_kernel<detail::decode_scaled_casts_kernel<false>, given_casts, float>);
}
