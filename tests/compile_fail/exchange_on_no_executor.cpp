// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The arguments in another order: the plan is no executor, and the compiler says what it lacks.

#include <tersum/cast_codec.hpp>
#include <tersum/exchange/exchange.hpp>
#include <tersum/execute/cpu_executor.hpp>

#include <cstddef>
#include <span>

// expected: has_copy

auto begin(tersum::plan<tersum::cast_codec<float>> const& plan, std::span<std::byte> state)
{
  return tersum::initialize(plan, plan, state, 1);
}
