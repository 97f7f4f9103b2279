// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradient and residual to codes once the ranks have agreed.

#include "support/cpu_bench.hpp"

namespace {

[[maybe_unused]] bool const registered = [] {
  using namespace tersum_bench;
  add_presets({"encode_feedback", part::encode_feedback});
  return name_compiler();
}();

}  // namespace
