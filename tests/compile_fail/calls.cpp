// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Calls of what takes the caller's functions and arrays.

#include <tersum/single_process/loopback_transport.hpp>
#include <tersum/tersum.hpp>

#include <cstddef>
#include <span>
#include <vector>

using namespace tersum;

// Tensors that are gone at the end of the line.
std::vector<tensor> tensors_of_my_model();
// expected: tersum: layout.tensors must live as long as the plan, and a temporary does not
auto const made = presets::fp16.plan({.coordinates = 100, .tensors = tensors_of_my_model()}, {});

// A transport that only moves bytes is told to sum saturating lanes in the wire.
auto sum(loopback_transport const& transport)
{
  // expected: tersum: this transport's all-reduce cannot do this operation: use schedule::direct
  return reduce_over<schedule::in_wire>(transport, cpu_executor{})(wire<saturating_add<4>>{});
}

status exchange(plan<codec<fixed_chunks<1024>, no_rotation, cast<half>, in_wire>> const& plan,
                std::span<float> x,
                std::span<std::byte> s,
                std::span<std::byte> w)
{
  // expected: tersum: reduce must return nothing, a tersum::status, or a transport's integer or enumerator, 0 for success
  return all_reduce_mean(cpu_executor{}, plan, x, s, w, [](auto) { return true; });
}
