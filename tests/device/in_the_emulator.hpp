// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Calls on arrays in the emulator, in every order of threads.

#pragma once

#include "placed_array.hpp"
#include "support/emulated_executor.hpp"

#include <doctest/doctest.h>

namespace tersum::tests {

using emulated_placement = placement<emulated_executor, host_buffer>;

//! body(placement) for each.
template <class Body>
void in_every_order(Body const& body)
{
  for (emulator::thread_order const order : emulator::thread_orders) {
    CAPTURE(order);
    body(emulated_placement{emulated_executor{order}, 20000});
  }
}

}  // namespace tersum::tests
