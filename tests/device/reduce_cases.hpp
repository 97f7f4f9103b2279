// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Reductions of two and of many arrays on any executor, against the operation itself, element by element.

#pragma once

#include "placed_array.hpp"
#include "support/reference_float.hpp"
#include "support/same_bytes.hpp"

#include <tersum/device/reduce.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_segments.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace tersum::tests {

//! Integers of any bits; floats whose sums round.
template <class T>
[[nodiscard]] std::vector<T> random_payload(std::size_t count, unsigned seed)
{
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<T> out(count);
  for (T& value : out) {
    if constexpr (gradient_element<T>) {
      value = from_float<T>(normal(random));
    } else {
      value = static_cast<T>(random());
    }
  }
  return out;
}

template <class Op, class Placement>
void check_reduce_of_many(Placement const& on, std::size_t count, unsigned ranks, bool misplaced)
{
  using element = typename Op::element;
  using array   = typename Placement::template array<element>;
  CAPTURE(count);
  CAPTURE(ranks);
  CAPTURE(misplaced);
  std::vector<element> want, all;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    auto const payload = random_payload<element>(count, 100 + rank);
    all.insert(all.end(), payload.begin(), payload.end());
    for (std::size_t i = 0; i < count; ++i) {
      if (rank == 0) {
        want.push_back(payload[i]);
      } else {
        want[i] = Op{}(want[i], payload[i]);
      }
    }
  }
  auto const n = static_cast<int>(ranks);
  array const gathered{all, misplaced && ranks % 2 != 0 ? 1u : 0u};
  array const to{count, misplaced ? 1u : 0u};
  REQUIRE(tersum::reduce(on.exec, Op{}, to.span(), gathered.span(), n) == status{});
  CHECK(to.read() == want);
  // In place of the first payload.
  auto const first = gathered.span().first(count);
  REQUIRE(tersum::reduce(on.exec, Op{}, first, gathered.span(), n) == status{});
  std::copy(want.begin(), want.end(), all.begin());
  CHECK(gathered.read() == all);
}

//! Any bits, but no NaN and no infinity.
template <class T>
[[nodiscard]] std::vector<T> random_elements(std::size_t count, unsigned seed)
{
  std::mt19937_64 random(seed);
  std::vector<T> out(count);
  while (count > 0) {
    auto const bits = random();
    std::memcpy(&out[count - 1], &bits, sizeof(T));
    if constexpr (gradient_element<T>) {
      if (!std::isfinite(to_float(out[count - 1]))) { continue; }
    }
    --count;
  }
  return out;
}

//! Whichever of the three arrays are misaligned, and whether the result replaces an operand. Kernels take 1024 vectors a block.
template <class Op, class Placement>
void check_reduce_of_two(Placement const& on)
{
  using element        = typename Op::element;
  using array          = typename Placement::template array<element>;
  std::size_t const in = 16 / sizeof(element);
  for (std::size_t const count : {std::size_t{0},
                                  std::size_t{1},
                                  in - 1,
                                  in,
                                  in + 1,
                                  257 * in + 3,
                                  1024 * in,
                                  1025 * in + 1,
                                  std::size_t{50021}}) {
    if (count > on.most) { continue; }
    auto const a = random_elements<element>(count, 1);
    auto const b = random_elements<element>(count, 2);
    std::vector<element> want(count);
    for (std::size_t i = 0; i < count; ++i) { want[i] = Op{}(a[i], b[i]); }
    for (unsigned const misplaced : {0U, 1U, 2U, 4U, 7U}) {
      for (int const target : {0, 1, 2}) {
        CAPTURE(count);
        CAPTURE(misplaced);
        CAPTURE(target);
        array const first{a, misplaced & 1}, second{b, misplaced >> 1 & 1},
          third{count, misplaced >> 2 & 1};
        array const& to = target == 0 ? third : target == 1 ? first : second;
        REQUIRE(tersum::reduce(on.exec, Op{}, to.span(), first.span(), second.span()) == status{});
        CHECK(same_bytes(to.read(), want));
      }
    }
  }
}

template <class Op, class Placement>
void check_reduce(Placement const& on)
{
  check_reduce_of_two<Op>(on);
  std::size_t const in = 16 / sizeof(typename Op::element);
  for (std::size_t const count :
       {std::size_t{0}, std::size_t{1}, in - 1, in, in + 1, 257 * in + 3, std::size_t{50021}}) {
    if (count > on.most) { continue; }
    for (unsigned const ranks : {1u, 2u, 3u, 6u}) {
      check_reduce_of_many<Op>(on, count, ranks, count % 2 != 0);
    }
  }
  // More than one launch takes: 64, then 63 at a time.
  for (unsigned const ranks : {64u, 65u, 130u}) {
    check_reduce_of_many<Op>(on, 2 * in + 1, ranks, false);
  }
}

//! Sums of 16 bits as exact sums rounded once: each pattern with itself, with what cancels it, with its neighbour, with one
//! of the opposite sign and half or twice the size, and with others, in every place of a word and of a vector.
template <class T, class Reference, class Placement>
void check_sums_of_patterns(Placement const& on)
{
  using array                 = typename Placement::template array<T>;
  constexpr std::size_t count = 0x10000;
  std::uint32_t const above   = std::is_same_v<T, half> ? 0x400u : 0x80u;  // twice the size
  Reference const reference;
  for (std::uint32_t const change : {0u, 0x8000u, 1u, 0x8000u + above, 0x8001u, 0x3c7bu, 0x93a6u}) {
    std::vector<T> a(count), b(count), want(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      a[i].bits = static_cast<std::uint16_t>(i * 0x9e37u);  // an odd factor: every pattern once
      b[i].bits = static_cast<std::uint16_t>(a[i].bits ^ change);
      bool const nan = Reference::is_nan(a[i].bits) || Reference::is_nan(b[i].bits);
      want[i].bits =
        reference.round(nan ? std::numeric_limits<double>::quiet_NaN()
                            : Reference::value(a[i].bits) + Reference::value(b[i].bits));
    }
    CAPTURE(change);
    array const first{a}, second{b}, to{count}, misplaced{count, 1};
    REQUIRE(tersum::reduce(on.exec, native_sum<T>{}, to.span(), first.span(), second.span()) ==
            status{});
    CHECK(to.read() == want);
    REQUIRE(tersum::reduce(
              on.exec, native_sum<T>{}, misplaced.span(), first.span(), second.span()) == status{});
    CHECK(misplaced.read() == want);
  }
}

//! Three widths in one payload: the position of a word decides how it is added.
template <class Placement>
void check_reduce_of_segments(Placement const& on)
{
  using segments = saturating_segments<2, 4, 8>;
  detail::selection_header header{};
  header.base[2] = 101;  // level 3 begins at 0
  header.base[1] = 230;
  typename Placement::template array<detail::selection_header> const parts{std::vector{header}};
  segments const here{&header}, there{parts.span().data()};
  for (std::size_t const count :
       {std::size_t{0}, std::size_t{1}, std::size_t{103}, std::size_t{401}}) {
    CAPTURE(count);
    std::vector<std::uint32_t> all, want(count);
    for (unsigned rank = 0; rank < 5; ++rank) {
      auto const payload = random_payload<std::uint32_t>(count, rank);
      all.insert(all.end(), payload.begin(), payload.end());
      for (std::size_t i = 0; i < count; ++i) {
        want[i] = rank == 0 ? payload[i] : here(want[i], payload[i], i);
      }
    }
    typename Placement::template array<std::uint32_t> const gathered{all}, to{count};
    REQUIRE(tersum::reduce(on.exec, there, to.span(), gathered.span(), 5) == status{});
    CHECK(to.read() == want);
  }
}

template <class Placement>
void check_reduce_arguments(Placement const& on)
{
  using array       = typename Placement::template array<float>;
  using add         = native_sum<float>;
  constexpr int all = 8;
  std::vector<float> const zeros(all), ones(all, 1.0f);
  array const a{zeros}, to{ones};
  std::span<float> const none{static_cast<float*>(nullptr), all};
  auto const refuses = [&](status const& s, std::string_view names) {
    CHECK(s.code == error_code::invalid_argument);
    CHECK(s.message.find(names) != std::string_view::npos);
    CHECK(to.read() == ones);
  };
  auto const of_two =
    [&](std::span<float> out, std::span<float const> x, std::span<float const> y) {
      return tersum::reduce(on.exec, add{}, out, x, y);
    };
  refuses(of_two(to.span(), a.span().first(7), a.span()), "a has not");
  refuses(of_two(to.span(), a.span(), a.span().first(7)), "b has not");
  refuses(of_two(to.span(), none, a.span()), "a is a null");
  refuses(of_two(none, a.span(), a.span()), "to is a null");
  refuses(of_two(to.span().first(4), to.span().subspan(1, 4), a.span().first(4)), "to overlaps a");
  auto const of_gathered = [&](std::size_t count, int ranks) {
    return tersum::reduce(on.exec, add{}, to.span().first(count), a.span(), ranks);
  };
  refuses(of_gathered(2, 3), "gathered has not");
  refuses(of_gathered(2, 0), "ranks must be");
  refuses(of_gathered(0, 65535), "ranks must be");
  refuses(tersum::reduce(on.exec, add{}, to.span(), none, 1), "gathered is a null");
  refuses(tersum::reduce(on.exec, add{}, to.span().subspan(1, 2), to.span().first(4), 2),
          "to overlaps");
}

}  // namespace tersum::tests
