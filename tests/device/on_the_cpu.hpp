// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Calls on arrays with every instruction set of this machine, on one thread and on several.

#pragma once

#include "placed_array.hpp"

#include <tersum/execute/cpu_executor.hpp>

#include <doctest/doctest.h>

namespace tersum::tests {

using cpu_placement = placement<cpu_executor, host_buffer>;

//! body(placement) for each.
template <class Body>
void on_every_cpu(Body const& body)
{
  for (instruction_set const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    if (set > best_instruction_set()) { continue; }
    for (int const threads : {1, 3}) {
      CAPTURE(static_cast<int>(set));
      CAPTURE(threads);
      body(cpu_placement{{.threads = threads, .instructions = set}});
    }
  }
}

}  // namespace tersum::tests
