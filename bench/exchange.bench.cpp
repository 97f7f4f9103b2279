// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Whole exchanges of four ranks in this memory, sums and copies included. The reference copies four gradients.

#include "support/cpu_bench.hpp"

namespace {

[[maybe_unused]] bool const registered = [] {
  using namespace tersum_bench;
  add_presets({"exchange", part::exchange});
  return name_compiler();
}();

}  // namespace
