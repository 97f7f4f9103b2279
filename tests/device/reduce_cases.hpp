// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Reductions of two and of many arrays on any executor, against the operation itself, element by element.

#pragma once

#include "placed_array.hpp"

#include <tersum/device/reduce.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <span>
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
  std::deque<array> payloads;
  std::vector<element const*> addresses;
  std::vector<element> want, all;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    auto const payload = random_payload<element>(count, 100 + rank);
    payloads.emplace_back(payload, misplaced && rank == 1 ? 1 : 0);
    addresses.push_back(payloads.back().span().data());
    all.insert(all.end(), payload.begin(), payload.end());
    for (std::size_t i = 0; i < count; ++i) {
      if (rank == 0) {
        want.push_back(payload[i]);
      } else {
        want[i] = Op{}(want[i], payload[i]);
      }
    }
  }
  array const to{count};
  REQUIRE(tersum::reduce(on.exec, Op{}, to.span(), addresses) == status{});
  CHECK(to.read() == want);
  array const gathered{all};
  array const again{count, misplaced ? 1u : 0u};
  REQUIRE(tersum::reduce(on.exec, Op{}, again.span(), gathered.span(), static_cast<int>(ranks)) ==
          status{});
  CHECK(again.read() == want);
  // In place of the first payload.
  REQUIRE(tersum::reduce(on.exec, Op{}, payloads[0].span(), addresses) == status{});
  CHECK(payloads[0].read() == want);
}

template <class Op, class Placement>
void check_reduce(Placement const& on)
{
  using element        = typename Op::element;
  using array          = typename Placement::template array<element>;
  std::size_t const in = 16 / sizeof(element);
  for (std::size_t const count :
       {std::size_t{0}, std::size_t{1}, in - 1, in, in + 1, 257 * in + 3, std::size_t{50021}}) {
    if (count > on.most) { continue; }
    auto const a = random_payload<element>(count, 1);
    auto const b = random_payload<element>(count, 2);
    std::vector<element> want(count);
    for (std::size_t i = 0; i < count; ++i) { want[i] = Op{}(a[i], b[i]); }
    array const first{a}, second{b, 1}, to{count};
    REQUIRE(tersum::reduce(on.exec, Op{}, to.span(), first.span(), second.span()) == status{});
    CHECK(to.read() == want);
    REQUIRE(tersum::reduce(on.exec, Op{}, second.span(), first.span(), second.span()) == status{});
    CHECK(second.read() == want);
    for (unsigned const ranks : {1u, 2u, 3u, 6u}) {
      check_reduce_of_many<Op>(on, count, ranks, count % 2 != 0);
    }
  }
  // More than one launch takes: 64, then 63 at a time.
  for (unsigned const ranks : {64u, 65u, 130u}) {
    check_reduce_of_many<Op>(on, 2 * in + 1, ranks, false);
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
  auto const of_many = [&](std::span<float> out, std::vector<float const*> const& payloads) {
    return tersum::reduce(on.exec, add{}, out, payloads);
  };
  refuses(of_many(to.span(), {}), "payloads is empty");
  refuses(of_many(to.span(), {a.span().data(), nullptr}), "a payload is a null");
  refuses(of_many(to.span(), {a.span().data(), to.span().data()}), "to overlaps a payload");
  auto const of_gathered = [&](std::size_t count, int ranks) {
    return tersum::reduce(on.exec, add{}, to.span().first(count), a.span(), ranks);
  };
  refuses(of_gathered(2, 3), "gathered has not");
  refuses(of_gathered(2, 0), "ranks must be");
  refuses(of_gathered(0, 5000), "ranks must be");
}

}  // namespace tersum::tests
