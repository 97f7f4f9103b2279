// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel instances of calls on arrays, whose machine code budgets_device.json limits.

#include "compile.hpp"

#include <tersum/tersum.cuh>

namespace {

using namespace tersum;

template <class... Kernel>
void compile_calls()
{
  compile(&detail::block_kernel<Kernel>...);
}

}  // namespace

void compile_device()
{
  using namespace tersum::detail;
  using rotator   = partial_hadamard<1024>;
  using quantizer = stochastic_quantizer<4>;
  using reducer   = saturating_sum<4>;
  compile_calls<rotate_kernel<rotator, float>,
                rotate_back_kernel<rotator, float>,
                quantize_kernel<1024, quantizer, reducer, float>,
                dequantize_kernel<1024, quantizer, reducer, float>,
                reduce_list_kernel<saturating_add<4>, 4>,
                reduce_list_kernel<saturating_add<4>, 1>,
                reduce_list_kernel<native_sum<float>, 4>,
                reduce_list_kernel<native_sum<tersum::half>, 8>,
                reduce_list_kernel<saturating_segments<2, 4, 8>, 4>>();
}
