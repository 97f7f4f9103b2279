// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Factors of matrices, and codes that owners of parts add, on the CPU.

#include "cpu_device.hpp"

namespace compare_codecs {

run_outcome run_unsummed(std::string_view name,
                         std::vector<std::vector<float>> const& gradients,
                         std::vector<layer> const& layers,
                         run_settings const& settings)
{
  return run_named(
    cpu_device{.executor = {.threads = settings.threads}},
    [](auto const& visit) { for_each_unsummed_codec(visit); },
    name,
    gradients,
    layers,
    settings);
}

}  // namespace compare_codecs
