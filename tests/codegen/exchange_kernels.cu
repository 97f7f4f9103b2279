// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances around those that rotate chunks, whose machine code budgets.json limits: beginnings and ends of an
//! exchange, casts, rotation of all chunks together, guard lanes, and what transports sum natively.

#include "compile.hpp"
#include "conformance/plain_forms.hpp"

#include <tersum/range/absmax_range.hpp>
#include <tersum/tersum.cuh>
#include <tersum_baselines/presets.hpp>

#include <cstdint>

namespace {

using namespace tersum;

template <class Codec, class Element>
void compile_ends()
{
  compile(&detail::exchange_kernel<detail::initialize_kernel, Codec, Element>,
          &detail::exchange_kernel<detail::bypass_kernel<true>, Codec, Element>,
          &detail::exchange_kernel<detail::bypass_kernel<false>, Codec, Element>);
}

template <class Codec>
void compile_full_rotation()
{
  compile(&detail::exchange_kernel<detail::full_forward_kernel, Codec, float>,
          &detail::chunk_kernel<detail::norms_kernel<false>, Codec, float>,
          &detail::exchange_kernel<detail::tensor_norms_kernel, Codec, float>,
          &detail::exchange_kernel<detail::steps_kernel, Codec, float>,
          &detail::chunk_kernel<detail::encode_kernel<false>, Codec, float>,
          &detail::chunk_kernel<detail::decode_kernel<false>, Codec, float>,
          &detail::exchange_kernel<detail::full_backward_kernel, Codec, float>);
}

template <class Codec, class Element>
void compile_casts()
{
  compile(&detail::exchange_kernel<detail::cast_kernel<true>, Codec, Element>,
          &detail::exchange_kernel<detail::cast_kernel<false>, Codec, Element>);
}

template <class Codec>
void compile_codes()
{
  compile(&detail::exchange_kernel<detail::steps_kernel, Codec, float>,
          &detail::chunk_kernel<detail::encode_kernel<false>, Codec, float>,
          &detail::chunk_kernel<detail::decode_kernel<false>, Codec, float>);
}

template <class Op>
void compile_sum()
{
  compile(&detail::block_kernel<detail::reduce_vectors_kernel<Op>>,
          &detail::block_kernel<detail::reduce_elements_kernel<Op>>);
}

template <class Codec>
void compile_parts()
{
  compile(&detail::exchange_kernel<detail::clear_parts_kernel, Codec, float>,
          &detail::exchange_kernel<detail::inspect_parts_kernel, Codec, float>);
}

template <class Codec, class Element, class... Kernel>
void compile_low_rank(Kernel...)
{
  compile(&detail::exchange_kernel<Kernel, Codec, Element>...);
}

using guarded = codec<fixed_chunks<1024>,
                      partial_hadamard<1024>,
                      summed_codes<rms_range<no_headroom>, stochastic_quantizer<2>, guard_lanes<4>>,
                      in_wire>;

// A range without a fused statistic, as users write it.
using measuring = codec<fixed_chunks<1024>,
                        partial_hadamard<1024>,
                        summed_codes<tests::plain_range<absmax_range<no_headroom>>,
                                     stochastic_quantizer<4>,
                                     saturating_sum<4>>,
                        in_wire>;

}  // namespace

void compile_exchange()
{
  compile_ends<codec_of<presets::rotated_sat4>, float>();
  compile_ends<codec_of<presets::rotated_sat4>, bfloat16>();
  compile_full_rotation<codec_of<presets::thc_wide4>>();
  compile_casts<codec_of<presets::fp16>, float>();
  compile_casts<codec_of<presets::bf16>, tersum::half>();
  compile_codes<guarded>();
  compile(&detail::chunk_kernel<detail::measure_kernel<false>, measuring, float>);
  compile_sum<native_sum<std::uint32_t>>();
  compile_sum<native_sum<float>>();
  compile_sum<native_sum<tersum::half>>();
  compile_sum<native_sum<bfloat16>>();
  compile_parts<codec_of<presets::two_shot_4>>();
  compile_parts<codec_of<presets::allocated_4>>();
  using namespace tersum::detail;
  compile_low_rank<::codec_of<presets::powersgd_r4>, float>(initialize_kernel{},
                                                            write_matrices{},
                                                            start_warm{},
                                                            bypass_kernel<true>{},
                                                            bypass_kernel<false>{},
                                                            receive_all{},
                                                            finish_kernel{});
}
