// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances of codecs that choose, whose machine code budgets.json limits.

#include <tersum/tersum.cuh>

#include <type_traits>

namespace {

using namespace tersum;

// Naming a kernel's address has it compiled.
template <class Codec, class Element>
void compile_choice()
{
  void const* volatile kernel = nullptr;
  kernel = reinterpret_cast<void const*>(&detail::norms_kernel<false, Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::select_kernel<Codec, Element>);
  (void)kernel;
}

template <class Codec, class Element>
void compile_casts()
{
  compile_choice<Codec, Element>();
  void const* volatile kernel = nullptr;
  kernel = reinterpret_cast<void const*>(&detail::cast_kernel<true, Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::cast_kernel<false, Codec, Element>);
  (void)kernel;
}

template <class Codec, class Element>
void compile_codes()
{
  compile_choice<Codec, Element>();
  void const* volatile kernel = nullptr;
  kernel = reinterpret_cast<void const*>(&detail::settle_kernel<Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::encode_kernel<false, Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::decode_kernel<false, Codec, Element>);
  (void)kernel;
}

template <class Codec, class Element>
void compile_coordinates()
{
  void const* volatile kernel = nullptr;
  kernel = reinterpret_cast<void const*>(&detail::send_coordinates_kernel<Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::clear_coordinates_kernel<Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::add_coordinates_kernel<Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::receive_coordinates_kernel<Codec, Element>);
  (void)kernel;
}

template <auto const& Preset>
using codec_of = std::remove_cvref_t<decltype(Preset)>;

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
  void const* volatile kernel =
    reinterpret_cast<void const*>(&detail::reduce_segments_kernel<segments>);
  (void)kernel;
}
