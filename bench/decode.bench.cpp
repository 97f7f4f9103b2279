// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Summed codes to the mean.

#include "support/cpu_bench.hpp"

namespace {

[[maybe_unused]] bool const registered = [] {
  using namespace tersum_bench;
  name_compiler();
  add_exchange_part(decode_operation);
  return true;
}();

}  // namespace
