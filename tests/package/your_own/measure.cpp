// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Benchmarks of a codec of one's own.

#include "quantizer.hpp"

#include <tersum_bench.hpp>

void tersum_bench::add_presets(operation const& what)
{
  add_preset<float>(what, "mine", my_codec{});
}
