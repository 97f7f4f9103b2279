// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances of codecs that choose, whose machine code budgets.json limits.

#include "compile.hpp"

#include <tersum/tersum.cuh>

namespace {

using namespace tersum;

template <class Codec, class Element>
void compile_choice()
{
  compile(&detail::norms_kernel<false, Codec, Element>, &detail::select_kernel<Codec, Element>);
}

template <class Codec, class Element>
void compile_casts()
{
  compile_choice<Codec, Element>();
  compile(&detail::cast_kernel<true, Codec, Element>, &detail::cast_kernel<false, Codec, Element>);
}

template <class Codec, class Element>
void compile_codes()
{
  compile_choice<Codec, Element>();
  compile(&detail::settle_kernel<Codec, Element>,
          &detail::encode_kernel<false, Codec, Element>,
          &detail::decode_kernel<false, Codec, Element>);
}

template <class Codec, class Element>
void compile_coordinates()
{
  compile(&detail::send_coordinates_kernel<Codec, Element>,
          &detail::clear_coordinates_kernel<Codec, Element>,
          &detail::add_coordinates_kernel<Codec, Element>,
          &detail::receive_coordinates_kernel<Codec, Element>);
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
  using segments = codec_of<presets::allocated_sat_4>::payload_op;
  compile(&detail::reduce_segments_kernel<segments>);
}
