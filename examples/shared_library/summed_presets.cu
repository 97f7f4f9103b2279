// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Presets whose payload is summed, on the current CUDA device.

#include "cuda_device.cuh"
#include "presets.hpp"

namespace shared_library {

made_codec make_summed_on_cuda(tersum_options const& options)
{
  return make_named<cuda_device>([](auto const& visit) { for_each_summed_preset(visit); }, options);
}

}  // namespace shared_library
