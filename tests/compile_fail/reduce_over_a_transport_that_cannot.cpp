// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A transport that only moves bytes is told to sum saturating lanes in the wire.

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/single_process/loopback_transport.hpp>

// expected: tersum: this transport's all-reduce cannot do this operation: use schedule::direct

auto sum(tersum::loopback_transport const& transport)
{
  using namespace tersum;
  return reduce_over<schedule::in_wire>(transport, cpu_executor{})(wire<saturating_add<4>>{});
}
