// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradient to codes once the ranks have agreed (`encode`), and with the local norms before it (`local`).

#include "support/cpu_bench.hpp"

namespace {

[[maybe_unused]] bool const registered = [] {
  using namespace tersum_bench;
  add_presets({"encode", part::encode});
  add_presets({"local", part::local});
  return name_compiler();
}();

}  // namespace
