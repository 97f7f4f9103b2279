// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs whose payload is summed, on the CPU.

#include "cpu_device.hpp"
#include "named_codecs.hpp"

namespace compare_codecs {

run_outcome run_summed(std::string_view name,
                       std::vector<std::vector<float>> const& gradients,
                       std::vector<layer> const& layers,
                       run_settings const& settings)
{
  return run_named(
    cpu_device{.executor = {.threads = settings.threads}},
    [](auto const& visit) { for_each_summed_codec(visit); },
    name,
    gradients,
    layers,
    settings);
}

}  // namespace compare_codecs
