// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A head-room that device code cannot call: an error, not a warning and a kernel that does nothing.
// expected: twice_as_wide::factor
// expected: is undefined in device code

#include <tersum/tersum.cuh>

#include <cstddef>
#include <span>

struct twice_as_wide {
  static constexpr bool tracked = false;
  constexpr tersum::description describe() const { return {"twice_as_wide"}; }
  [[nodiscard]] float factor(int, float) const noexcept { return 2; }
};

using codec = tersum::codec<tersum::fixed_chunks<256>,
                            tersum::partial_hadamard<256>,
                            tersum::summed_codes<tersum::rms_range<twice_as_wide>,
                                                 tersum::stochastic_quantizer<4>,
                                                 tersum::saturating_sum<4>>,
                            tersum::in_wire>;

tersum::status exchange(tersum::cuda_executor const& exec,
                        tersum::plan<codec> const& plan,
                        std::span<float> gradient,
                        std::span<std::byte> state,
                        std::span<std::byte> workspace)
{
  return all_reduce_mean(exec, plan, gradient, state, workspace, [](auto) {});
}
