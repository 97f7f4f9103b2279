// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances of two-shot codecs, whose machine code budgets.json limits.

#include "compile.hpp"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

namespace {

using namespace tersum;

// With Edge: gradients that are misaligned, or end within a chunk.
template <class Codec, class Element, bool Edge = false>
void compile_rounds()
{
  compile(&detail::chunk_kernel<detail::encode_parts_kernel<Edge>, Codec, Element>,
          &detail::exchange_kernel<detail::recompress_kernel<false>, Codec, Element>,
          &detail::chunk_kernel<detail::decode_parts_kernel<Edge>, Codec, Element>);
}

template <class Codec, class Element, bool Edge = false>
void compile_feedback()
{
  compile(&detail::chunk_kernel<detail::keep_residual_kernel<Edge>, Codec, Element>,
          &detail::exchange_kernel<detail::keep_owner_residual_kernel<false>, Codec, Element>);
}

}  // namespace

void compile_two_shot()
{
  compile_rounds<codec_of<presets::two_shot_4>, float>();
  compile_rounds<codec_of<presets::two_shot_4>, bfloat16>();
  compile_rounds<codec_of<presets::two_shot_4>, float, true>();
  using gathered = codec_of<presets::gathered_2>;
  compile(&detail::chunk_kernel<detail::decode_parts_kernel<false>, gathered, float>,
          &detail::chunk_kernel<detail::decode_parts_kernel<false>, gathered, bfloat16>);
  compile_feedback<codec_of<presets::two_shot_4_ef>, float>();
  compile_feedback<codec_of<presets::two_shot_4_ef>, float, true>();
  compile_rounds<codec_of<presets::two_shot_4_ef>, tersum::half>();
  compile_feedback<codec_of<presets::two_shot_4_ef>, tersum::half>();
  compile_rounds<codec_of<presets::allocated_4>, float>();
  compile_rounds<codec<allocated_chunks<512, 2, 4, 6, 7, 8, 10, 14>,
                       partial_hadamard<512>,
                       scaled_codes<lloyd_max<8>>,
                       two_shot>,
                 float>();
  compile_rounds<codec_of<presets::blocks_4>, float>();
}
