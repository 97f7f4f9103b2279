// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a rank measures before the ranks agree: norms or magnitudes of chunks; under `full_hadamard` also the rotation.

#include "support/cpu_bench.hpp"

namespace {

[[maybe_unused]] bool const registered = [] {
  using namespace tersum_bench;
  add_presets({"norms", part::norms});
  return name_compiler();
}();

}  // namespace
