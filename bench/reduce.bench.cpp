// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Payload + payload in its place, as a hop of an all-reduce does it. The reference copies one payload.

#include "support/cpu_bench.hpp"

namespace {

using namespace tersum_bench;

[[maybe_unused]] bool const registered = [] {
  add_presets({"reduce", part::reduce});
  return name_compiler();
}();

}  // namespace
