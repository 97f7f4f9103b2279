// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Quantized factors have no measure, encode and decode: their rounds are exchanges themselves.

#include <tersum/exchange/exchange.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/presets.hpp>

#include <cstddef>
#include <span>

// expected: tersum: quantized factors are exchanged by all_reduce_mean; in parts by those of plan.factors()

template <class Codec>
auto begin(tersum::plan<Codec> const& plan,
           std::span<float> gradient,
           std::span<std::byte> state,
           std::span<std::byte> workspace)
{
  return tersum::encode(tersum::cpu_executor{}, plan, gradient, state, workspace);
}

auto const begun =
  begin(tersum::presets::powersgd_r4_sat8.plan(tersum::layout{}, {.size = 1}), {}, {}, {});
