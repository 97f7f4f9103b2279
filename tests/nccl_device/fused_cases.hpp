// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is exchanged in one kernel, and what must come out: all ranks of a loopback on the CPU.

#pragma once

#include "support/codecs.hpp"

#include <tersum/layout.hpp>
#include <tersum/presets.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <interop/twin.hpp>
#include <limits>
#include <string_view>
#include <vector>

namespace tersum::tests {

//! The exchanges of a case, one after the other; those from the second on know what the ones before have kept.
inline constexpr int fused_steps = 4;

//! Of chunks that take all threads of a block, which share memory, in bytes that every transport adds.
using sums_of_long_chunks =
  tests::rotated_sums<2048, rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>;

//! @brief Calls visit(name, codec, element) for each case.
template <class Visit>
void for_each_fused_case(Visit const& visit)
{
  visit("rotated_sat4", presets::rotated_sat4, float{});
  visit("sums of long chunks, bfloat16", sums_of_long_chunks{}, bfloat16{});
  visit("rotated_sat4_ef", presets::rotated_sat4_ef, float{});
  visit("two_shot_4", presets::two_shot_4, float{});
  visit("two_shot_8, with tables, bfloat16", presets::two_shot_8, bfloat16{});
  visit("1 bit up and 3 down", presets::two_way_shot<1, 3>{}, float{});
}

//! A rank's gradient, rounded to the elements of a case. The last rank's has an infinity in the second step.
template <class Element>
[[nodiscard]] std::vector<Element> gradient_in(std::size_t size, int world, int rank, int step)
{
  std::vector<Element> out;
  for (float const value : make_gradient(size, world, rank, step)) {
    out.push_back(from_float<Element>(value));
  }
  if (step == 1 && rank == world - 1) {
    out[size / 2] = from_float<Element>(std::numeric_limits<float>::infinity());
  }
  return out;
}

//! The same as floats.
template <class Element>
[[nodiscard]] std::vector<float> in_floats(std::vector<Element> const& values)
{
  std::vector<float> out;
  for (Element const value : values) { out.push_back(to_float(value)); }
  return out;
}

//! What all ranks decode in a case, step after step, in floats; nothing if an exchange fails. Ranks that are threads share it.
[[nodiscard]] std::vector<std::vector<float>> const& expected_fused(std::string_view name,
                                                                    layout const& shape,
                                                                    int world);

}  // namespace tersum::tests
