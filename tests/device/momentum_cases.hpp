// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Momentum of arrays on any executor: against the formulas in double, and what is not finite.

#pragma once

#include "../../examples/your_own/gradient_average.hpp"
#include "placed_array.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/device/add_momentum.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tersum::tests {

//! What is added to mu times the momentum, and how much of the gradient and of the momentum is encoded.
struct momentum_formula {
  double mu, share, of_gradient, of_momentum;
};

//! Five steps of a rule, with the bits of `cpu_executor`, the last one in place, too. Normal values of these seeds stay below 4.8, and a momentum below
//! 4.8 (1 + .75 + ... + .75^4) < 16, so that rounding a product and a sum errs by at most 2 * 2^-21. All that five steps erred by counts
//! 1 / (1 - .75) of it at most, and a value errs by as much once more: 10 * 2^-21 < 5e-6. In units of what occurs that is below 1e-6.
template <class Element, class Momentum, class Placement>
void check_momentum(Placement const& on, Momentum const& rule, momentum_formula const& formula)
{
  for (std::size_t const count : sizes_about(128, std::min<std::size_t>(on.most, 3000))) {
    CAPTURE(count);
    typename Placement::template array<float> const a{std::vector<float>(count)},
      b{std::vector<float>(count)};
    std::vector<float> host_kept(count), host_values(count);
    std::vector<double> m(count);
    for (unsigned step = 0; step < 5; ++step) {
      CAPTURE(step);
      std::vector<Element> given(count);
      auto const drawn = normal_gradients(1, count, 40 + step);
      for (std::size_t i = 0; i < count; ++i) { given[i] = from_float<Element>(drawn[0][i]); }
      typename Placement::template array<Element> const gradient{given, step % 2};
      typename Placement::template array<float> const values{count, step % 2};
      bool const swapped   = step % 2 != 0;
      auto const& kept     = swapped ? b : a;
      auto const& next     = swapped ? a : b;
      auto const from      = std::span<Element const>{gradient.span()};
      auto const kept_span = std::span<float const>{kept.span()};
      REQUIRE(add_momentum(on.exec, rule, from, kept_span, next.span(), values.span()) == status{});
      auto const got       = values.read();
      auto const kept_next = next.read();
      std::span<float const> const host_before{host_kept};
      REQUIRE(add_momentum(cpu_executor{}, rule, given, host_before, host_kept, host_values) ==
              status{});
      REQUIRE(kept_next == host_kept);
      REQUIRE(got == host_values);
      std::vector<Element> in_place;
      if (step == 4) {  // the same in place
        REQUIRE(
          add_momentum(on.exec, rule, gradient.span(), kept_span, kept.span(), gradient.span()) ==
          status{});
        in_place = gradient.read();
        CHECK(kept.read() == kept_next);
      }
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        double const g    = static_cast<double>(to_float(given[i]));
        m[i]              = formula.mu * m[i] + formula.share * g;
        double const want = formula.of_gradient * g + formula.of_momentum * m[i];
        wrong += std::abs(static_cast<double>(kept_next[i]) - m[i]) <= 5e-6 ? 0 : 1;
        wrong += std::abs(static_cast<double>(got[i]) - want) <= 5e-6 ? 0 : 1;
        if (step == 4) {
          wrong += to_float(in_place[i]) == to_float(from_float<Element>(got[i])) ? 0 : 1;
        }
      }
      REQUIRE(wrong == 0);
    }
  }
}

//! All rules, and elements of all types.
template <class Placement>
void check_rules_of_momentum(Placement const& on)
{
  constexpr double mu = .75;
  check_momentum<float>(on, heavy_ball{.75f}, {mu, 1, 0, 1});
  check_momentum<float>(on, nesterov{.75f}, {mu, 1, 1, mu});
  check_momentum<bfloat16>(on, nesterov{.75f}, {mu, 1, 1, mu});
  check_momentum<half>(on, heavy_ball{0}, {0, 1, 0, 1});
  check_momentum<float>(on, gradient_average{}, {.75, .25, 0, 1});
}

//! Coordinates that are not finite, and those whose half overflows, keep their momentum; their neighbours do not.
template <class Placement>
void check_momentum_not_finite(Placement const& on)
{
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<float> const given{1, std::nanf(""), inf, -inf, 60000, 3e38f, 2};
  typename Placement::template array<float> const gradient{given},
    kept{std::vector<float>{4, 4, 4, 4, 60000, 3e38f, 4}}, next{given.size()}, values{given.size()};
  typename Placement::template array<half> const halves{given.size()};
  auto const from   = std::span<float const>{gradient.span()};
  auto const before = std::span<float const>{kept.span()};
  heavy_ball const rule{.5f};
  REQUIRE(add_momentum(on.exec, rule, from, before, next.span(), halves.span()) == status{});
  CHECK(next.read() == std::vector<float>{3, 4, 4, 4, 60000, 3e38f, 4});
  CHECK(to_float(halves.read()[4]) == inf);
  REQUIRE(add_momentum(on.exec, rule, from, before, next.span(), values.span()) == status{});
  CHECK(next.read() == std::vector<float>{3, 4, 4, 4, 90000, 3e38f, 4});
  auto const sent = values.read();
  CHECK(std::isnan(sent[1]));
  CHECK(std::vector<float>(sent.begin() + 2, sent.end()) ==
        std::vector<float>{inf, -inf, 90000, inf, 4});
}

template <class Residual, class Placement>
void check_masking(Placement const& on)
{
  std::vector<Residual> kept;
  for (float const value : {0.0f, 1.0f, -0.0f, -2.0f, std::nanf("")}) {
    kept.push_back(from_float<Residual>(value));
  }
  typename Placement::template array<Residual> const residual{kept};
  typename Placement::template array<float> const momenta{std::vector<float>(kept.size(), 7)};
  std::span<Residual const> const from{residual.span()};
  REQUIRE(mask_momentum(on.exec, from, momenta.span()) == status{});
  CHECK(momenta.read() == std::vector<float>{0, 7, 0, 7, 7});
}

//! A call that is refused writes nothing.
template <class Placement>
void check_momentum_arguments(Placement const& on)
{
  std::vector<float> const as(8, 5), ones(8, 1);
  typename Placement::template array<float> const g{ones}, m{as}, n{as}, v{as};
  auto const refused = [&](auto const& rule, auto from, auto kept, auto next, auto to) {
    std::span<float const> const a{from}, b{kept};
    status const s = add_momentum(on.exec, rule, a, b, next, to);
    CHECK(s.code == error_code::invalid_argument);
    CHECK(n.read() == as);
    CHECK(v.read() == as);
    return s.message;
  };
  using namespace std::string_view_literals;
  auto const all = [](auto const& array) { return array.span(); };
  heavy_ball const rule{};
  CHECK(refused(rule, all(g), all(m).first(7), all(n), all(v)) ==
        "kept has another length than gradient"sv);
  CHECK(refused(rule, all(g), all(m), all(n).first(7), all(v)) ==
        "next has another length than gradient"sv);
  CHECK(refused(rule, all(g), all(m), all(n), all(v).first(7)) ==
        "values has another length than gradient"sv);
  CHECK(refused(rule, all(g).first(7), all(m).first(7), all(n).first(7), all(g).last(7)) ==
        "values overlaps gradient"sv);
  CHECK(refused(rule, all(g).first(7), all(m).first(7), all(m).last(7), all(v).first(7)) ==
        "next overlaps kept"sv);
  CHECK(refused(rule, all(g), all(m), all(g), all(v)) == "momenta overlap the gradient"sv);
  CHECK(refused(rule, all(g), all(v), all(n), all(v)) == "momenta overlap the values"sv);
  std::span<float> const null{static_cast<float*>(nullptr), 8};
  CHECK(refused(rule, all(g), all(m), null, all(v)) ==
        "an array is a null pointer, or not aligned to its elements"sv);
  for (float const mu : {1.0f, -.1f, std::nanf("")}) {
    CHECK(refused(nesterov{mu}, all(g), all(m), all(n), all(v)) ==
          "mu of a momentum must be from 0 to below 1"sv);
  }
  std::span<float const> const from{g.span()};
  CHECK(mask_momentum(on.exec, from, n.span().first(7)).message ==
        "momenta has another length than residual"sv);
  CHECK(mask_momentum(on.exec, from, g.span()).message == "momenta overlaps residual"sv);
  CHECK(mask_momentum(on.exec, std::span<float const>{null}, n.span()).message ==
        "an array is a null pointer, or not aligned to its elements"sv);
  CHECK(g.read() == ones);
}

//! Everything of the above.
template <class Placement>
void check_all_of_momentum(Placement const& on)
{
  check_rules_of_momentum(on);
  check_momentum_not_finite(on);
  check_masking<float>(on);
  check_masking<bfloat16>(on);
  check_momentum_arguments(on);
}

}  // namespace tersum::tests
