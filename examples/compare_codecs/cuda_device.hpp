// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The same codecs on the current CUDA device, in cuda_device.cu when the program is built with CUDA.

#pragma once

#include "codecs.hpp"

namespace compare_codecs {

//! @brief Empty if there is a device, otherwise a sentence.
[[nodiscard]] std::string cuda_problem();

//! @brief `run_codec` on the current device.
[[nodiscard]] run_outcome run_on_cuda(std::string_view name,
                                      std::vector<std::vector<float>> const& gradients,
                                      std::vector<layer> const& layers,
                                      run_settings const& settings);

}  // namespace compare_codecs
