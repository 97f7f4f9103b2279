// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs that send factors of matrices, on the CPU.

#include "cpu_device.hpp"
#include "named_codecs.hpp"

namespace compare_codecs {

run_outcome run_low_rank(std::string_view name,
                         std::vector<std::vector<float>> const& gradients,
                         std::vector<layer> const& layers,
                         run_settings const& settings)
{
  return run_named(
    cpu_device{.executor = {.threads = settings.threads}},
    [](auto const& visit) { for_each_low_rank_codec(visit); },
    name,
    gradients,
    layers,
    settings);
}

}  // namespace compare_codecs
