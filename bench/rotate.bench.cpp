// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a rotation costs: gradient to codes, norms included, of codecs that differ in their rotator only.

#include "support/cpu_bench.hpp"

namespace {

[[maybe_unused]] bool const registered = [] {
  using namespace tersum_bench;
  name_compiler();
  for_each_rotator([](std::string_view rotator, auto const& codec) {
    add_exchange_part<float>(local_operation, "rotate", rotator, codec);
  });
  return true;
}();

}  // namespace
