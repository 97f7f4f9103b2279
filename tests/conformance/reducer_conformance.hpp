// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of reductions and reducers, for those of the library and of its users.

#pragma once

#include "support/mismatches.hpp"

#include <tersum/concepts.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

namespace tersum::tests {

//! The bits of an element of a wire, to compare.
template <class T>
[[nodiscard]] std::uint64_t element_bits(T value)
{
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else {
    return value.bits;
  }
}

//! A random element: any integer; a finite floating-point number that is not negative, as the agreed scalars are.
template <class T>
[[nodiscard]] T random_element(std::mt19937_64& random)
{
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    double const mantissa = 1 + static_cast<double>(random() >> 12) / 0x1p52;
    return from_float<T>(
      static_cast<float>(std::ldexp(mantissa, static_cast<int>(random() % 20) - 10)));
  }
}

//! @brief Checks what a reduction promises about the order of its operands.
//!
//! It is commutative, and a pure function of the bits. Where it says `associative`, every bracketing of every order of several
//! operands gives the same bits; where it denies it, operands exist that show why.
template <reduce_op Op>
void check_reduce_op_laws(Op const& op = {})
{
  using element = typename Op::element;
  static_assert(std::is_trivially_copyable_v<element>);
  static_assert(!Op::native || std::is_arithmetic_v<element> || gradient_element<element>);

  std::mt19937_64 random(67);
  mismatches commutes;
  std::size_t brackets_differ = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<element> x;
    for (int rank = 0; rank < 5; ++rank) { x.push_back(random_element<element>(random)); }
    commutes.expect(
      element_bits<element>(op(x[0], x[1])), element_bits<element>(op(x[1], x[0])), i);

    element const in_turn = op(op(op(op(x[0], x[1]), x[2]), x[3]), x[4]);
    element const as_tree = op(op(x[3], x[1]), op(x[4], op(x[0], x[2])));
    element const at_last = op(x[2], op(x[0], op(x[4], op(x[1], x[3]))));
    brackets_differ += element_bits(in_turn) != element_bits(as_tree);
    brackets_differ += element_bits(in_turn) != element_bits(at_last);
  }
  CHECK(commutes.report() == "");
  CHECK(Op::associative == (brackets_differ == 0));
}

//! @brief Checks that words of packed codes sum as the reducer says, lane by lane, for worlds up to the largest.
//!
//! Codes of magnitude up to `max_level` are laid into the lanes of one wire element as the wire format has it: two's
//! complement, or code + max_level where the reducer is `biased`. A saturating reducer then equals a loop that clamps after
//! each addition; any other gives the exact sum in whatever order, with every rank at either end, and not with one rank more.
template <reducer Reducer>
void check_reducer_laws(int max_level)
{
  using op      = typename Reducer::op;
  using element = typename op::element;
  using word    = std::make_unsigned_t<element>;

  constexpr int lane_bits     = Reducer::lane_bits;
  constexpr int lanes         = static_cast<int>(sizeof(word)) * 8 / lane_bits;
  constexpr std::int64_t span = std::int64_t{1} << lane_bits;
  constexpr std::int64_t end  = span / 2 - 1;
  static_assert(lanes >= 1 && lanes * lane_bits == static_cast<int>(sizeof(word)) * 8);
  CAPTURE(lane_bits);
  CAPTURE(max_level);

  int const largest = Reducer::max_world(max_level);
  REQUIRE(largest >= 1);
  std::vector<int> worlds;
  for (int const world : {1, 2, 3, 4, 8, 17, largest}) {
    if (world <= largest && world <= 70000) { worlds.push_back(world); }
  }

  std::mt19937_64 random(71);
  auto const random_code = [&](int style) -> std::int64_t {
    if (style == 0) { return max_level; }
    if (style == 1) { return -max_level; }
    if (style == 2) { return random() % 2 ? max_level : -max_level; }
    return static_cast<std::int64_t>(random() % (2 * static_cast<std::uint64_t>(max_level) + 1)) -
           max_level;
  };

  // The sum that a lane of a reduced element holds.
  auto const decode = [&](element total, int lane, int world) -> std::int64_t {
    auto const digit = static_cast<std::int64_t>((element_bits(total) >> (lane * lane_bits)) &
                                                 (static_cast<std::uint64_t>(span) - 1));
    if constexpr (Reducer::biased) { return digit - std::int64_t{world} * max_level; }
    return digit < span / 2 ? digit : digit - span;
  };

  mismatches wrong;
  for (int const world : worlds) {
    for (int trial = 0; trial < (world > 1000 ? 4 : 40); ++trial) {
      std::vector<element> payloads;
      std::vector<std::vector<std::int64_t>> codes;
      for (int rank = 0; rank < world; ++rank) {
        word packed = 0;
        codes.emplace_back();
        for (int lane = 0; lane < lanes; ++lane) {
          // Neighbouring lanes are of different styles, so that one that overflows meets one that does not.
          std::int64_t const code = random_code((trial + lane) % 4);
          codes.back().push_back(code);
          std::int64_t const digit = Reducer::biased ? code + max_level : (code + span) % span;
          packed = static_cast<word>(packed | (static_cast<word>(digit) << (lane * lane_bits)));
        }
        payloads.push_back(static_cast<element>(packed));
      }

      element in_turn = payloads[0];
      for (std::size_t rank = 1; rank < payloads.size(); ++rank) {
        in_turn = op{}(in_turn, payloads[rank]);
      }
      std::vector<element> tree = payloads;
      while (tree.size() > 1) {
        for (std::size_t i = 0; i < tree.size() / 2; ++i) {
          tree[i] = op{}(tree[i], tree[tree.size() - 1 - i]);
        }
        tree.resize((tree.size() + 1) / 2);
      }

      for (int lane = 0; lane < lanes; ++lane) {
        std::int64_t sum = 0;
        for (auto const& of_rank : codes) {
          sum += of_rank[static_cast<std::size_t>(lane)];
          if constexpr (Reducer::saturating) { sum = std::clamp(sum, -end, end); }
        }
        wrong.expect(decode(in_turn, lane, world), sum, world, trial, lane);
        if constexpr (!Reducer::saturating) {
          wrong.expect(decode(tree[0], lane, world), sum, world, trial, lane);
        }
      }
    }
  }
  CHECK(wrong.report() == "");
  if (!Reducer::saturating && largest <= 70000) {
    // All ranks have the largest code in the first lane, and the least in others.
    std::int64_t const digit = Reducer::biased ? 2 * max_level : max_level;
    element total            = 0;
    for (int rank = 0; rank <= largest; ++rank) {
      total = op{}(total, static_cast<element>(static_cast<word>(digit)));
    }
    CHECK(decode(total, 0, largest + 1) != std::int64_t{largest + 1} * max_level);
  }
}

}  // namespace tersum::tests
