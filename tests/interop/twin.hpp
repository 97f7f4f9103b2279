// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What suites over transports exchange, and what must come out: all ranks of a loopback on the CPU.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/collective/loopback.hpp>
#include <tersum/layout.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace tersum::tests {

inline constexpr std::array<tensor, 3> bucket{
  {{"weight", 30, 100, 0}, {"bias", 1, 30, 3000}, {"more", 11, 97, 3030}}};
inline constexpr std::array<layout, 3> shapes{
  {{.coordinates = 1}, {.coordinates = 5001}, {.coordinates = 4097, .tensors = bucket}}};
//! For budgets that do not pay for anything of those.
inline constexpr std::array<layout, 2> large_shapes{
  {{.coordinates = 20001}, {.coordinates = 60001}}};

//! @brief All ranks of a loopback, step after step: their mean, and whether a gradient was not finite.
class twin {
 public:
  virtual ~twin()                                                                   = default;
  [[nodiscard]] virtual bool step(std::vector<std::vector<float>> const& gradients) = 0;
  [[nodiscard]] virtual std::vector<float> const& mean() const                      = 0;
  [[nodiscard]] virtual bool non_finite()                                           = 0;
};

//! The twin of so many ranks with a preset, named as in presets.hpp.
[[nodiscard]] std::unique_ptr<twin> make_twin(std::string_view preset,
                                              layout const& shape,
                                              int world,
                                              reduction_order order);

//! What a rank's gradient is in a step; in the last step rank n - 1 has a NaN.
[[nodiscard]] std::vector<float> make_gradient(
  std::size_t size, int world, int rank, int step, int steps);

//! A NaN equals a NaN.
[[nodiscard]] bool same(std::vector<float> const& a, std::vector<float> const& b);

//! Whether anything but bypassed coordinates travels.
template <class Plan>
[[nodiscard]] bool something_travels(Plan const& plan)
{
  if constexpr (requires { plan.payload_bytes(); }) {
    return plan.payload_bytes() > 0;
  } else {
    return plan.part_bytes() > 0;
  }
}

//! Whether the order of a codec's reductions is without effect.
template <class Codec>
[[nodiscard]] constexpr bool any_order()
{
  if constexpr (nesting<Codec>) {
    return false;  // what is in no matrix is summed as floats
  } else if constexpr (gathering<Codec>) {
    return true;
  } else if constexpr (recompressing<Codec>) {
    return !Codec::agrees;
  } else if constexpr (Codec::agrees) {
    return Codec::payload_op::associative && Codec::agreed_op::associative;
  } else {
    return Codec::payload_op::associative;
  }
}

//! Whether what travels does not depend on the gradient, so that a NaN may stay at home.
template <class Codec>
[[nodiscard]] constexpr bool draws_chunks()
{
  if constexpr (requires { Codec::chunker_type::by_norm; }) {
    return !Codec::chunker_type::by_norm;
  } else {
    return false;
  }
}

}  // namespace tersum::tests
