// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances whose machine code budgets.json limits.

#include "compile.hpp"

#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>
#include <tersum_baselines/served_sum.hpp>

namespace {

using namespace tersum;

template <class Codec, class Element>
void compile_chunk_kernels()
{
  compile(&detail::chunk_kernel<detail::norms_kernel<false>, Codec, Element>,
          &detail::chunk_kernel<detail::magnitudes_kernel<false>, Codec, Element>,
          &detail::exchange_kernel<detail::steps_kernel, Codec, Element>,
          &detail::chunk_kernel<detail::encode_kernel<false>, Codec, Element>,
          &detail::chunk_kernel<detail::encode_kernel<true>, Codec, Element>,
          &detail::chunk_kernel<detail::decode_kernel<false>, Codec, Element>,
          &detail::chunk_kernel<detail::decode_kernel<true>, Codec, Element>,
          &detail::exchange_kernel<detail::finish_kernel, Codec, Element>);
}

// Of small exchanges.
template <class Codec, class Element>
void compile_small_kernels()
{
  compile(&detail::exchange_kernel<detail::derive_and_encode_kernel, Codec, Element>);
}

template <int Bits>
void compile_reduce_kernels()
{
  compile(&detail::block_kernel<detail::reduce_vectors_kernel<saturating_add<Bits>>>,
          &detail::block_kernel<detail::reduce_elements_kernel<saturating_add<Bits>>>);
}

// The encoder, which looks up, and what a server's sums take besides. 32 coordinates a thread; to unpack 16.
template <class Codec>
void compile_lookup_kernels()
{
  using sum = lookup_sum_of<Codec>;
  compile(&detail::chunk_kernel<detail::encode_kernel<false>, Codec, float>,
          &detail::item_kernel<detail::pack_item<sum>>,
          &detail::item_kernel<detail::unpack_item<sum, Codec::chunk_size>>);
}

template <class Codec, class Element>
void compile_low_rank_kernels()
{
  using namespace detail;
  compile(&exchange_kernel<multiply_all<true>, Codec, Element>,
          &exchange_kernel<multiply_all<false>, Codec, Element>,
          &exchange_kernel<add_all<true>, Codec, Element>,
          &exchange_kernel<add_all<false>, Codec, Element>,
          &exchange_kernel<orthonormalize_all, Codec, Element>,
          &exchange_kernel<rebuild_all, Codec, Element>,
          &exchange_kernel<keep_all_warm, Codec, Element>);
}

template <int Size>
using sat4_of =
  codec<fixed_chunks<Size>,
        partial_hadamard<Size>,
        summed_codes<rms_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>>,
        in_wire>;

}  // namespace

void compile_all()
{
  compile_chunk_kernels<codec_of<presets::rotated_sat2>, float>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4>, float>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4>, tersum::half>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4>, bfloat16>();
  compile_chunk_kernels<codec_of<presets::rotated_sat8>, float>();
  compile_small_kernels<codec_of<presets::rotated_sat4>, float>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4_ef>, float>();
  compile_chunk_kernels<codec_of<presets::thc_sat4>, float>();
  compile_chunk_kernels<codec_of<presets::thc_wide4_partial>, float>();
  compile_lookup_kernels<codec_of<presets::thc_lookup4>>();
  compile_chunk_kernels<sat4_of<128>, float>();
  compile_chunk_kernels<sat4_of<8192>, float>();
  compile_chunk_kernels<sat4_of<32768>, float>();
  compile_reduce_kernels<2>();
  compile_reduce_kernels<4>();
  compile_reduce_kernels<8>();
}

void compile_low_rank()
{
  compile_low_rank_kernels<codec_of<presets::powersgd_r4>, float>();
  compile_low_rank_kernels<codec_of<presets::powersgd_r64>, float>();
  compile_low_rank_kernels<presets::alternating_iteration<16>, bfloat16>();
}
