// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances whose machine code budgets.json limits.

#include <tersum/tersum.cuh>

#include <type_traits>

namespace {

using namespace tersum;

// Naming a kernel's address has it compiled.
template <class Codec, class Element>
void compile_chunk_kernels()
{
  void const* volatile kernel = nullptr;
  kernel = reinterpret_cast<void const*>(&detail::norms_kernel<false, Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::magnitudes_kernel<false, Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::settle_kernel<Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::encode_kernel<false, Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::encode_kernel<true, Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::decode_kernel<false, Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::decode_kernel<true, Codec, Element>);
  kernel = reinterpret_cast<void const*>(&detail::finish_kernel<Codec, Element>);
  (void)kernel;
}

template <int Bits>
void compile_reduce_kernels()
{
  void const* volatile kernel = nullptr;
  kernel = reinterpret_cast<void const*>(&detail::reduce_vectors_kernel<saturating_add<Bits>>);
  kernel = reinterpret_cast<void const*>(&detail::reduce_elements_kernel<saturating_add<Bits>>);
  kernel = reinterpret_cast<void const*>(&detail::reduce_once_kernel<Bits, 8>);
  (void)kernel;
}

// The encoder, which looks up, and what a server's sums take besides. 32 coordinates a thread; 16 to unpack.
template <class Codec>
void compile_lookup_kernels()
{
  using sum                   = lookup_sum_of<Codec>;
  void const* volatile kernel = nullptr;
  kernel = reinterpret_cast<void const*>(&detail::encode_kernel<false, Codec, float>);
  kernel = reinterpret_cast<void const*>(&detail::item_kernel<detail::pack_item<sum>>);
  kernel = reinterpret_cast<void const*>(
    &detail::item_kernel<detail::unpack_item<sum, Codec::chunk_size>>);
  (void)kernel;
}

template <auto const& Preset>
using codec_of = std::remove_cvref_t<decltype(Preset)>;

template <auto const& Preset>
void compile_hop_kernel()
{
  using op                    = typename codec_of<Preset>::payload_op;
  void const* volatile kernel = nullptr;
  kernel                      = reinterpret_cast<void const*>(&detail::recode_elements_kernel<op>);
  (void)kernel;
}

template <int Size>
using sat4_of = codec<fixed_chunks<Size>,
                      partial_hadamard<Size>,
                      rms_range<tracked_correlation>,
                      stochastic_quantizer<4>,
                      saturating_sum<4>>;

template <int Size>
using sat4_tc_of = codec<fixed_chunks<Size>,
                         tensor_core_hadamard<Size>,
                         rms_range<tracked_correlation>,
                         stochastic_quantizer<4>,
                         saturating_sum<4>>;

}  // namespace

void compile_all()
{
  compile_chunk_kernels<codec_of<presets::rotated_sat2>, float>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4>, float>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4>, tersum::half>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4>, bfloat16>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4_tc>, tersum::half>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4_tc>, bfloat16>();
  compile_chunk_kernels<codec_of<presets::rotated_sat8>, float>();
  compile_chunk_kernels<codec_of<presets::rotated_sat4_ef>, float>();
  compile_chunk_kernels<codec_of<presets::thc_sat4>, float>();
  compile_chunk_kernels<codec_of<presets::thc_wide4_partial>, float>();
  compile_lookup_kernels<codec_of<presets::thc_lookup4>>();
  compile_chunk_kernels<sat4_of<128>, float>();
  compile_chunk_kernels<sat4_of<8192>, float>();
  compile_chunk_kernels<sat4_of<32768>, float>();
  compile_chunk_kernels<sat4_tc_of<256>, tersum::half>();
  compile_chunk_kernels<sat4_tc_of<512>, bfloat16>();
  compile_reduce_kernels<2>();
  compile_reduce_kernels<4>();
  compile_reduce_kernels<8>();
  compile_hop_kernel<presets::per_hop_2>();
  compile_hop_kernel<presets::per_hop_4>();
  compile_hop_kernel<presets::dynamiq_hop_4>();
}

namespace {

template <class Codec, class Element>
void compile_low_rank_kernels()
{
  void const* volatile kernel = nullptr;
  auto const compile          = [&]<class Kernel>(Kernel) {
    kernel = reinterpret_cast<void const*>(&detail::low_rank_kernel<Kernel, Codec, Element>);
  };
  compile(detail::multiply_all<true>{});
  compile(detail::multiply_all<false>{});
  compile(detail::settle_all{});
  compile(detail::rebuild_all{});
  compile(detail::keep_all_warm{});
  (void)kernel;
}

}  // namespace

void compile_low_rank()
{
  compile_low_rank_kernels<codec_of<presets::powersgd_r4>, float>();
  compile_low_rank_kernels<codec_of<presets::powersgd_r64>, float>();
  compile_low_rank_kernels<codec_of<presets::acp_r16>, bfloat16>();
}
