// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the quantizer role, for every quantizer of the library and of its users.

#pragma once

#include "support/mismatches.hpp"

#include <tersum/concepts.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/packed_codes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

namespace tersum::tests {

//! @brief What `encode` is asked about: positions on the grid, in units of the step, on and off it, in ascending order.
template <quantizer Quantizer>
[[nodiscard]] std::vector<float> grid_positions()
{
  constexpr int unit = 1 << Quantizer::fraction_bits;
  std::vector<float> positions;
  // Every resolved point and every tie up to a step beyond the grid, thinned for wide grids.
  int const end    = 2 * unit * (Quantizer::max_level + 1);
  int const stride = end > 8192 ? 31 : 1;
  for (int twice = -end; twice <= end; twice += stride) {
    positions.push_back(static_cast<float>(twice) / static_cast<float>(2 * unit));
  }
  for (int level = -Quantizer::max_level; level <= Quantizer::max_level; ++level) {
    float const at    = static_cast<float>(level);
    float const above = std::numeric_limits<float>::infinity();
    for (float const near : {std::nextafter(at, -above), at, std::nextafter(at, above)}) {
      positions.push_back(near);
    }
  }
  std::mt19937 random(17);
  for (int i = 0; i < 500; ++i) {
    positions.push_back(static_cast<float>((static_cast<double>(random()) / 0x1p31 - 1) *
                                           (Quantizer::max_level + 1)));
  }
  std::sort(positions.begin(), positions.end());
  return positions;
}

//! @brief The codes that a quantizer gives to values of the grid, ascending: with steps between them that need not be equal.
template <quantizer Quantizer>
[[nodiscard]] std::vector<std::int32_t> levels_of(Quantizer const& quantizer)
{
  constexpr std::uint32_t draws = 1u << Quantizer::fraction_bits;
  std::set<std::int32_t> codes;
  for (float const position : grid_positions<Quantizer>()) {
    for (std::uint32_t draw = 0; draw < draws; ++draw) {
      codes.insert(quantizer.encode(position, static_cast<float>(draws), draw));
    }
  }
  return {codes.begin(), codes.end()};
}

//! @brief Checks every law of the role on one quantizer.
//!
//! - Any floats and any random byte give a code in +-max_level, which fits `bits` and the lanes.
//! - A zero value, and a zero scale with any finite value, give code 0.
//! - Codes do not fall when the value rises, and inside the grid are the level below or above it (the nearest one if not
//!   random). The levels are those codes that it gives at all; of one with a `grid`, all from -max_level to max_level.
//! - What counts is value * scale: powers of two may move from one to the other.
//! - `unbiased`: the mean over all random numbers is the value rounded to nearest in units of
//!   2^-fraction_bits, and is odd in the value. Between levels that are several steps apart random numbers of fraction_bits leave
//!   open half of their distance in these units.
//! - A level has itself as its code.
//! - `no_dither`: the random number has no influence.
//! - `grid`: `encode` rounds to it.
template <quantizer Quantizer>
void check_quantizer_laws(Quantizer const& quantizer = {})
{
  constexpr int limit            = Quantizer::max_level;
  constexpr std::uint32_t draws  = 1u << Quantizer::fraction_bits;
  constexpr float unit           = static_cast<float>(draws);
  constexpr float infinity       = std::numeric_limits<float>::infinity();
  constexpr bool random_matters  = !std::is_same_v<typename Quantizer::dither, no_dither>;
  std::vector<float> const steps = grid_positions<Quantizer>();

  static_assert(dither_source<typename Quantizer::dither>);
  static_assert(Quantizer::bits >= 2 && Quantizer::bits <= 16);
  static_assert(limit >= 1 && limit <= (1 << (Quantizer::bits - 1)) - 1, "a code fits its bits");
  static_assert(Quantizer::fraction_bits >= 0 && Quantizer::fraction_bits <= 8,
                "there are eight random bits");
  static_assert(Quantizer::fraction_bits == 0 || random_matters);
  static_assert(!Quantizer::unbiased || random_matters, "rounding without dither has a bias");
  static_assert(std::is_trivially_copyable_v<Quantizer>);

  SUBCASE("any input gives a code of the grid")
  {
    std::vector<float> extremes = {std::numeric_limits<float>::quiet_NaN(),
                                   infinity,
                                   std::numeric_limits<float>::max(),
                                   1e30f,
                                   16777216.0f,
                                   8388608.0f,
                                   4194304.5f,
                                   1.0f,
                                   std::numeric_limits<float>::min(),
                                   std::numeric_limits<float>::denorm_min(),
                                   0.0f};
    std::mt19937 random(23);
    for (int i = 0; i < 500; ++i) {
      extremes.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    }
    mismatches wrong;
    for (float const value : extremes) {
      for (float const scale : extremes) {
        for (std::uint32_t const draw : {0u, draws / 2, draws - 1}) {
          for (float const signed_value : {value, -value}) {
            std::int32_t const code = quantizer.encode(signed_value, std::fabs(scale), draw);
            wrong.expect(code >= -limit && code <= limit, true, signed_value, scale, draw);
          }
        }
      }
    }
    CHECK(wrong.report() == "");
  }

  SUBCASE("zero has code zero")
  {
    mismatches wrong;
    for (std::uint32_t draw = 0; draw < draws; ++draw) {
      for (float const other : {0.0f, 1.0f, 1e-30f, 1e30f, std::numeric_limits<float>::max()}) {
        wrong.expect(quantizer.encode(0.0f, other, draw), 0, other, draw);
        wrong.expect(quantizer.encode(-0.0f, other, draw), 0, other, draw);
        wrong.expect(quantizer.encode(other, 0.0f, draw), 0, other, draw);
        wrong.expect(quantizer.encode(-other, 0.0f, draw), 0, other, draw);
      }
    }
    CHECK(wrong.report() == "");
  }

  // The levels on either side of a position of the grid.
  std::vector<std::int32_t> const levels = levels_of(quantizer);
  auto const around                      = [&](float position) {
    auto const above =
      std::lower_bound(levels.begin(), levels.end(), position, [](std::int32_t code, float at) {
        return static_cast<float>(code) < at;
      });
    auto const high = above == levels.end() ? levels.end() - 1 : above;
    auto const low =
      high == levels.begin() || static_cast<float>(*high) == position ? high : high - 1;
    return std::pair<double, double>{*low, *high};
  };

  SUBCASE("codes rise with the value and stay next to it")
  {
    mismatches falls, far, moved;
    for (std::uint32_t draw = 0; draw < draws; ++draw) {
      std::int32_t last = -limit;
      for (float const position : steps) {
        std::int32_t const code = quantizer.encode(position, unit, draw);
        falls.expect(code >= last, true, position, draw);
        last = code;
        if (std::fabs(position) <= static_cast<float>(limit)) {
          // A random code may lie beyond the neighbours by the part that the value is first rounded by.
          double const away      = std::fabs(static_cast<double>(position) - code);
          auto const [low, high] = around(position);
          double const nearest   = std::min(position - low, high - position);
          double const farthest  = std::max({position - low, high - position, 0.5 / draws});
          far.expect(
            away <= (random_matters ? farthest + 0.5 / draws : nearest), true, position, draw);
        }
        moved.expect(
          quantizer.encode(position * 0x1p-20f, unit * 0x1p20f, draw), code, position, draw);
        moved.expect(
          quantizer.encode(position * 0x1p20f, unit * 0x1p-20f, draw), code, position, draw);
      }
    }
    CHECK(falls.report() == "");
    CHECK(far.report() == "");
    CHECK(moved.report() == "");
  }

  SUBCASE("an unbiased quantizer has the value as its mean, odd and exact on the finer grid")
  {
    auto const sum = [&](float position) {
      std::int32_t total = 0;
      for (std::uint32_t draw = 0; draw < draws; ++draw) {
        total += quantizer.encode(position, unit, draw);
      }
      return total;
    };
    mismatches mean, odd;
    bool strays = false;
    for (float const position : steps) {
      double const finer     = std::nearbyint(static_cast<double>(position) * draws);
      double const bounded   = std::clamp(finer, -1.0 * limit * draws, 1.0 * limit * draws);
      auto const [low, high] = around(position);
      double const open      = high - low > 1 ? (high - low) / 2 : 0;
      mean.expect(std::fabs(sum(position) - bounded) <= open, true, position, sum(position));
      odd.expect(sum(-position), -sum(position), position);
      double const bias = std::fabs(sum(position) / static_cast<double>(draws) - position);
      strays            = strays || (std::fabs(position) <= limit && bias > 0x1p-9);
    }
    if constexpr (Quantizer::unbiased) {
      CHECK(mean.report() == "");
      CHECK(odd.report() == "");
    } else {
      CHECK(strays);  // who denies it must stray by more than eight random bits leave open
    }
  }

  SUBCASE("without dither the random number has no influence")
  {
    if constexpr (!random_matters) {
      mismatches wrong;
      for (float const position : steps) {
        std::int32_t const code = quantizer.encode(position, unit, 0);
        for (std::uint32_t draw = 1; draw < 256; ++draw) {
          wrong.expect(quantizer.encode(position, unit, draw), code, position, draw);
        }
      }
      CHECK(wrong.report() == "");
    }
  }

  SUBCASE("one that says so rounds to the grid")
  {
    if constexpr (has_grid<Quantizer>) {
      mismatches wrong;
      for (std::uint32_t draw = 0; draw < draws; ++draw) {
        for (float const position : steps) {
          wrong.expect(quantizer.encode(position, unit, draw),
                       round_to_grid<limit, Quantizer::fraction_bits>(position, unit, draw),
                       position,
                       draw);
        }
      }
      CHECK(wrong.report() == "");
    }
  }

  SUBCASE("every level has itself as its code and survives its lane")
  {
    using lanes = packed_codes<std::bit_ceil(static_cast<unsigned>(Quantizer::bits))>;
    mismatches reached, lane;
    if constexpr (has_grid<Quantizer>) { CHECK(levels.size() == 2 * limit + 1); }
    CHECK(std::binary_search(levels.begin(), levels.end(), 0));
    for (std::int32_t const code : levels) {
      for (std::uint32_t const draw : {0u, draws - 1}) {
        std::int32_t const got = quantizer.encode(static_cast<float>(code), unit, draw);
        reached.expect(got, code, code);
        lane.expect(lanes::get(lanes::put(got, 1), 1), code, code);
      }
      CHECK(std::binary_search(levels.begin(), levels.end(), -code));
    }
    CHECK(reached.report() == "");
    CHECK(lane.report() == "");
  }
}

}  // namespace tersum::tests
