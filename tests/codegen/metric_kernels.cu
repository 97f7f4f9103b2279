// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances of codecs in a metric, whose machine code budgets limit.

#include "compile.hpp"

#include <tersum/tersum.cuh>

namespace {

using namespace tersum;

using in_lanes     = codec<fixed_chunks<1024>,
                       partial_hadamard<1024>,
                       rms_range<tracked_correlation>,
                       stochastic_quantizer<4>,
                       saturating_sum<4>,
                       no_feedback,
                       kept_diagonal>;
using feeding_back = two_shot_codec<fixed_chunks<1024>,
                                    partial_hadamard<1024>,
                                    lloyd_max<2>,
                                    error_feedback,
                                    kept_diagonal>;

using shards = sharded_codec<fixed_chunks<1024>,
                             partial_hadamard<1024>,
                             lloyd_max<2>,
                             no_feedback,
                             given_diagonal>;

using kept_casts  = cast_codec<tersum::half, top_chunks<128>, error_feedback, kept_diagonal>;
using given_casts = cast_codec<tersum::half, top_chunks<128>, no_feedback, given_diagonal>;
using factors =
  low_rank_codec<low_rank<4>, float, low_rank_schedule::paired, error_feedback, kept_diagonal>;

}  // namespace

void compile_values_in_metric()
{
  using kept       = values_codec<fixed_chunks<1024>,
                            partial_hadamard<1024>,
                            lloyd_max<2>,
                            error_feedback,
                            kept_diagonal>;
  using difference = values_codec<fixed_chunks<1024>,
                                  partial_hadamard<1024>,
                                  lloyd_max<2>,
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
          &detail::exchange_kernel<detail::recompress_kernel, feeding_back, float>,
          &detail::exchange_kernel<detail::keep_owner_residual_kernel, feeding_back, float>,
          &detail::exchange_kernel<detail::recompress_in_rows_kernel, feeding_back, float>,
          &detail::exchange_kernel<detail::keep_owner_residual_in_rows_kernel, feeding_back, float>,
          &detail::exchange_kernel<detail::add_shard_in_rows_kernel, shards, float>,
          &detail::chunk_kernel<detail::encode_scaled_casts_kernel<false>, kept_casts, float>,
          &detail::chunk_kernel<detail::decode_scaled_casts_kernel<false>, kept_casts, float>,
          &detail::exchange_kernel<detail::inspect_scaled_casts_kernel, kept_casts, float>,
          &detail::chunk_kernel<detail::encode_scaled_casts_kernel<false>, given_casts, float>,
          &detail::chunk_kernel<detail::decode_scaled_casts_kernel<false>, given_casts, float>,
          &detail::exchange_kernel<detail::find_largest_scales, factors, float>,
          &detail::exchange_kernel<detail::multiply_all<false>, factors, float>,
          &detail::exchange_kernel<detail::rebuild_all, factors, float>);
}
