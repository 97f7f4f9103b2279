// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two shots: the codes of four ranks to those of their mean, one part of four.

#include "support/cpu_bench.hpp"

namespace {

[[maybe_unused]] bool const registered = [] {
  using namespace tersum_bench;
  add_presets({"recompress", part::recompress});
  return name_compiler();
}();

}  // namespace
