// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! By how much codes of `tensor_core_hadamard` may differ from those of `partial_hadamard`.

#pragma once

#include "exchange_fixture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace tersum::tests {

//! @brief The lanes of a payload of two's complement, in wire order.
template <int Bits>
[[nodiscard]] std::vector<int> lanes_of(byte_string const& bytes)
{
  static_assert(Bits <= 8);
  std::vector<int> lanes;
  for (std::byte const each : bytes) {
    for (int shift = 0; shift < 8; shift += Bits) {
      int const lane = static_cast<int>(each) >> shift & ((1 << Bits) - 1);
      lanes.push_back(lane >= 1 << (Bits - 1) ? lane - (1 << Bits) : lane);
    }
  }
  return lanes;
}

//! @brief What the ranks of a trace of one step sent: entries called `what`, one a rank.
[[nodiscard]] inline std::vector<byte_string> sent(exchange_trace const& trace,
                                                   std::string_view what)
{
  std::vector<byte_string> out;
  for (trace_entry const& each : trace) {
    if (each.what == what) { out.push_back(each.bytes); }
  }
  return out;
}

//! @brief Checks that the codes of all ranks, in the first step, differ by one level at most, and no more often than
//! rounding explains. For `rms_range` and stochastic rounding.
//!
//! A rotated chunk x is off by a root mean square of 2^-11 |x| / sqrt(Size), and its step is at least
//! sqrt(|x|^2 / (ranks Size)) spread / max_level, as |x|^2 is at most the agreed sum. Float sums add 2^-16: they are five
//! products of tiles deep at most, each of which cuts 17 terms at 2^-23 of the largest. Values below 2^-14, where half has
//! fewer bits, add 2^-16 steps. The dither changes a code if it falls between the two positions on its grid of 1/256 of a
//! step, which lie apart by that error and one unit of the grid at most; the largest error is sqrt(Size) times the root
//! mean square, which is below a step.
template <class Codec>
void check_codes(Codec const& codec,
                 std::vector<byte_string> const& got,
                 std::vector<byte_string> const& want)
{
  constexpr int bits      = Codec::reducer_type::lane_bits;
  constexpr int limit     = Codec::quantizer_type::max_level;
  std::uint64_t differ    = 0;
  std::uint64_t count     = 0;
  std::size_t const ranks = want.size();
  REQUIRE(got.size() == ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CAPTURE(rank);
    auto const a = lanes_of<bits>(got[rank]);
    auto const b = lanes_of<bits>(want[rank]);
    REQUIRE(a.size() == b.size());
    int most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      most = std::max(most, std::abs(a[i] - b[i]));
      differ += a[i] != b[i] ? 1U : 0U;
    }
    count += a.size();
    CHECK(most <= 1);
  }
  double const error = (0x1p-11 + 0x1p-16) * std::sqrt(static_cast<double>(ranks)) * limit /
                         static_cast<double>(codec.coder.range.clip) +
                       0x1p-16;
  CHECK(error * std::sqrt(static_cast<double>(Codec::chunk_size)) < 1 - 1.0 / 256);
  double const expected = static_cast<double>(count) * (error + 1.0 / 256);
  CAPTURE(differ);
  CAPTURE(expected);
  CHECK(static_cast<double>(differ) <= expected + 6 * std::sqrt(expected));
}

}  // namespace tersum::tests
