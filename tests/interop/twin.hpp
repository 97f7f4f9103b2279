// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What suites over transports exchange, and what must come out: all ranks of a loopback on the CPU.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/layout.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

inline constexpr int steps = 2;

//! What all ranks of a loopback decode, step after step, and whether a gradient was not finite.
struct expectation {
  bool ok = true;
  std::vector<std::vector<float>> means;
  std::vector<bool> non_finite;
};

//! @brief What so many ranks decode with a preset, named as in presets.hpp. Ranks that are threads share it.
[[nodiscard]] expectation const& expected(std::string_view preset,
                                          layout const& shape,
                                          int world,
                                          reduction_order order);

//! What a rank's gradient is in a step; in the last step rank n - 1 has a NaN.
[[nodiscard]] std::vector<float> make_gradient(std::size_t size, int world, int rank, int step);

//! A NaN equals a NaN.
template <class Element>
[[nodiscard]] bool same(std::vector<Element> const& a, std::vector<Element> const& b)
{
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](Element x, Element y) {
    return std::isnan(to_float(x)) ? std::isnan(to_float(y)) : std::memcmp(&x, &y, sizeof x) == 0;
  });
}

//! @brief The boundaries of shards that cut chunks and tensors, of which the first is empty; none for equal shards.
[[nodiscard]] std::vector<std::uint64_t> shard_cuts(std::uint64_t size, int world, bool uneven);

//! The shards, of codes of 2 bits with feedback, that a loopback gives to a rank, step after step; nothing if it fails.
[[nodiscard]] std::vector<std::vector<float>> expected_shards(layout const& shape,
                                                              bool uneven,
                                                              int world,
                                                              int rank);

//! The same of codes of 4 bits that are added in integers of 8.
[[nodiscard]] std::vector<std::vector<float>> expected_summed_shards(layout const& shape,
                                                                     bool uneven,
                                                                     int world,
                                                                     int rank);

//! @brief What all ranks of a loopback hold after exchanges of differences in 4 bits, step after step; nothing if they fail or differ.
//! The values are the gradient of rank 0.
[[nodiscard]] std::vector<std::vector<float>> expected_differences(layout const& shape,
                                                                   bool uneven,
                                                                   int world);

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
  if constexpr (gathering<Codec>) {
    return true;
  } else if constexpr (scattering<Codec> || copying<Codec>) {
    return !agrees<Codec>;
  } else if constexpr (agrees<Codec>) {
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
