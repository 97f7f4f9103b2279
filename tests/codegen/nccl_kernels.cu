// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels over NCCL's symmetric memory, whose machine code budgets_nccl.json limits.

#include "compile.hpp"

#include <tersum/tersum.cuh>

#include <cstdint>
#include <tersum_nccl_device/nccl_fused.cuh>

namespace {

using namespace tersum;

template <class Codec, class Element>
void compile_fused()
{
  compile(&detail::fused_kernel<detail::fused_flags, Codec, Element>);
}

}  // namespace

void compile_rounds()
{
  compile(&detail::symmetric_kernel<saturating_add<4>>,
          &detail::symmetric_kernel<native_sum<float>>,
          &detail::symmetric_kernel<native_sum<tersum::half>>,
          &detail::symmetric_kernel<native_sum<std::int8_t>>,
          &detail::symmetric_gather_kernel<std::uint32_t>,
          &detail::symmetric_scatter_kernel<std::uint32_t>,
          &detail::symmetric_sum_kernel<saturating_add<4>>,
          &detail::symmetric_sum_kernel<native_sum<std::int8_t>>);
}

void compile_exchanges()
{
  compile_fused<codec_of<presets::rotated_sat4>, float>();
  compile_fused<codec_of<presets::rotated_sat4>, bfloat16>();
  compile_fused<codec_of<presets::rotated_sat8>, float>();
  compile_fused<codec_of<presets::rotated_sat4_ef>, float>();
  compile_fused<codec_of<presets::two_shot_4>, float>();
  compile_fused<codec_of<presets::two_shot_4>, bfloat16>();
}
