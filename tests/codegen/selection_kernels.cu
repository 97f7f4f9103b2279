// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances of codecs that choose, whose machine code budgets.json limits.

#include "compile.hpp"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

namespace {

using namespace tersum;

template <class Codec, class Element>
void compile_choice()
{
  compile(&detail::chunk_kernel<detail::norms_kernel<false>, Codec, Element>,
          &detail::exchange_kernel<detail::select_kernel, Codec, Element>);
}

template <class Codec, class Element>
void compile_casts()
{
  compile_choice<Codec, Element>();
  compile(&detail::exchange_kernel<detail::cast_kernel<true>, Codec, Element>,
          &detail::exchange_kernel<detail::cast_kernel<false>, Codec, Element>);
}

template <class Codec, class Element>
void compile_codes()
{
  compile_choice<Codec, Element>();
  compile(&detail::exchange_kernel<detail::steps_kernel, Codec, Element>,
          &detail::chunk_kernel<detail::encode_kernel<false>, Codec, Element>,
          &detail::chunk_kernel<detail::decode_kernel<false>, Codec, Element>);
}

template <class Codec, class Element>
void compile_coordinates()
{
  compile(&detail::exchange_kernel<detail::send_coordinates_kernel, Codec, Element>,
          &detail::exchange_kernel<detail::clear_coordinates_kernel, Codec, Element>,
          &detail::exchange_kernel<detail::add_coordinates_kernel, Codec, Element>,
          &detail::exchange_kernel<detail::receive_coordinates_kernel, Codec, Element>);
}

}  // namespace

void compile_selection()
{
  compile_casts<codec_of<presets::topkc_b05>, float>();
  compile_casts<codec_of<presets::topkc_b2>, float>();
  compile_casts<codec_of<presets::topkc_b2>, bfloat16>();
  compile_casts<codec_of<presets::topkc_b2_ef>, float>();
  compile_codes<codec_of<presets::topkc_sat4>, float>();
  compile_codes<codec_of<presets::allocated_sat_4>, float>();
  compile_coordinates<codec_of<presets::topk_b2>, float>();
  using drawn = codec_of<presets::randomk_b2>;
  compile(
    &detail::exchange_kernel<detail::send_drawn_kernel, drawn, float>,
    &detail::exchange_kernel<detail::receive_drawn_kernel, drawn, float>,
    &detail::exchange_kernel<detail::send_drawn_kernel, codec_of<presets::randomk_b2_ef>, float>);
  using segments = codec_of<presets::allocated_sat_4>::payload_op;
  compile(&detail::block_kernel<detail::reduce_segments_kernel<segments>>);
}
