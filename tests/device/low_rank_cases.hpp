// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Orthonormal columns and factors of matrices on any executor: against double, and against a low-rank exchange.

#pragma once

#include "placed_array.hpp"
#include "support/known_matrix.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/device/orthogonalize.hpp>
#include <tersum/device/power_iteration.hpp>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tersum::tests {

template <class Orthogonalizer, class Placement>
void check_orthogonalize(Placement const& on, std::size_t length, int columns)
{
  CAPTURE(length);
  CAPTURE(columns);
  auto const k      = static_cast<std::size_t>(columns);
  auto const before = normal_gradients(1, length * k, 8)[0];
  typename Placement::template array<float> const factor{before};
  REQUIRE(orthogonalize(on.exec, Orthogonalizer{}, factor.span(), columns) == status{});
  auto const got = factor.read();
  CHECK(orthogonality_error(got.data(), length, columns) <= 1e-5);
  // All of the first column's direction is kept: columns are made orthonormal in their order.
  double product = 0, square = 0;
  for (std::size_t i = 0; i < length; ++i) {
    auto const b = static_cast<double>(before[i]);
    product += b * static_cast<double>(got[i]);
    square += b * b;
  }
  CHECK(std::fabs(product - std::sqrt(square)) <= 1e-5 * std::sqrt(square));
}

//! Factors of a batch are those of as many calls.
template <class Orthogonalizer, class Placement>
void check_batch(Placement const& on, std::size_t length, int columns, std::size_t count)
{
  std::size_t const each = length * static_cast<std::size_t>(columns);
  auto const before      = normal_gradients(1, each * count, 9)[0];
  typename Placement::template array<float> const together{before};
  REQUIRE(orthogonalize(on.exec, Orthogonalizer{}, together.span(), columns, count) == status{});
  auto const got = together.read();
  for (std::size_t i = 0; i < count; ++i) {
    CAPTURE(i);
    auto const first = static_cast<std::ptrdiff_t>(i * each);
    auto const last  = static_cast<std::ptrdiff_t>((i + 1) * each);
    typename Placement::template array<float> const alone{
      std::vector<float>(before.begin() + first, before.begin() + last)};
    REQUIRE(orthogonalize(on.exec, Orthogonalizer{}, alone.span(), columns) == status{});
    CHECK(alone.read() == std::vector<float>(got.begin() + first, got.begin() + last));
  }
}

//! The largest error of a product over what float sums of so many terms may lose.
[[nodiscard]] inline double product_error(std::vector<float> const& matrix,
                                          std::size_t rows,
                                          std::size_t width,
                                          bool of_rows,
                                          std::vector<float> const& from,
                                          std::vector<float> const& to)
{
  std::size_t const length = of_rows ? rows : width, terms = of_rows ? width : rows;
  double worst = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::size_t const k = i / length, lane = i % length;
    double sum = 0, magnitudes = 0;
    for (std::size_t t = 0; t < terms; ++t) {
      double const m = static_cast<double>(matrix[of_rows ? lane * width + t : t * width + lane]);
      double const f = static_cast<double>(from[k * terms + t]);
      sum += m * f;
      magnitudes += std::fabs(m * f);
    }
    double const bound = 0x1p-24 * static_cast<double>(terms + 1) * magnitudes;
    double const error = std::fabs(sum - static_cast<double>(to[i]));
    worst              = std::max(worst, bound > 0 ? error / bound : error > 0 ? 2.0 : 0.0);
  }
  return worst;
}

template <class Placement>
void check_products(Placement const& on, std::size_t rows, std::size_t width, int rank)
{
  CAPTURE(rows);
  CAPTURE(width);
  CAPTURE(rank);
  using array  = typename Placement::template array<float>;
  auto const k = static_cast<std::size_t>(rank);
  auto const m = normal_gradients(1, rows * width, 2)[0];
  auto const q = normal_gradients(1, width * k, 3)[0];
  for (std::size_t const misplaced : {0u, 1u}) {
    array const values{m, misplaced}, right{q}, left{rows * k}, again{width * k};
    matrix_view<float> const matrix{values.span().data(), rows, width};
    std::span<float const> const from = right.span(), product = left.span();
    REQUIRE(left_factor(on.exec, matrix, rank, from, left.span()) == status{});
    auto const p = left.read();
    CHECK(product_error(m, rows, width, true, q, p) <= 1);
    REQUIRE(right_factor(on.exec, matrix, rank, product, again.span()) == status{});
    CHECK(product_error(m, rows, width, false, p, again.read()) <= 1);
  }
}

//! Of a matrix of known singular values the iteration finds the largest.
template <class Placement>
void check_power_iteration(Placement const& on)
{
  using array = typename Placement::template array<float>;
  known_matrix const known{70, 65, {8.0, 4.0, .5, .25}, 11};
  array const values{known.dense()}, right{normal_gradients(1, 2 * 65, 4)[0]}, left{2 * 70};
  auto const dense = known.dense();
  for (int step = 0; step < 5; ++step) {
    REQUIRE(power_iteration(on.exec,
                            robust_cholesky_qr2{},
                            matrix_view<float>{values.span().data(), 70, 65},
                            2,
                            left.span(),
                            right.span()) == status{});
  }
  auto const p = left.read(), q = right.read();
  double error = 0;
  for (std::size_t i = 0; i < 70; ++i) {
    for (std::size_t j = 0; j < 65; ++j) {
      double rest = static_cast<double>(dense[i * 65 + j]);
      for (std::size_t c = 0; c < 2; ++c) {
        rest -= static_cast<double>(p[c * 70 + i]) * static_cast<double>(q[c * 65 + j]);
      }
      error += rest * rest;
    }
  }
  // No factors of two columns leave less than .5^2 + .25^2; each step shrinks what is left above it by (.5 / 4)^2 or more.
  CHECK(error >= .3125 - 1e-4);
  CHECK(error <= .3125 + 1e-3);
}

//! The three parts of an iteration make the factors that a low-rank exchange sends, bit by bit.
template <class Placement>
void check_factors_of_exchange(Placement const& on, std::size_t rows, std::size_t width)
{
  CAPTURE(rows);
  CAPTURE(width);
  using array = typename Placement::template array<float>;
  low_rank_codec<low_rank<4>, float, low_rank_schedule::paired, no_feedback> codec{};
  codec.low_rank.least_saving = 0;
  tensor const tensors[]      = {{.rows = rows, .columns = width}};
  auto const plan = codec.plan(layout{rows * width, tensors}, world{.size = 1, .rank = 0});
  REQUIRE(plan.check() == status{});
  REQUIRE(plan.chunks() == 1);
  auto gradient   = normal_gradients(1, rows * width, 6)[0];
  auto const copy = gradient;
  std::vector<word4> state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1);
  auto const states = std::as_writable_bytes(std::span{state});
  auto const works  = std::as_writable_bytes(std::span{workspace});
  cpu_executor const host;
  REQUIRE(initialize(host, plan, states, 3) == status{});
  auto const* const warm = reinterpret_cast<float const*>(states.data() + plan.warm_offset());
  std::size_t const rank = std::min({std::size_t{4}, rows, width});
  std::vector<float> const start(warm, warm + rank * width);
  REQUIRE(measure(host, plan, gradient, states, works) == status{});
  auto const first = agreed_wire(plan, works);
  std::vector<float> const sums(first.data, first.data + rank * rows);
  REQUIRE(encode(host, plan, gradient, states, works) == status{});
  auto const second = payload_wire(plan, works);
  std::vector<float> const want(second.data, second.data + rank * width);

  array const values{copy}, right{start}, left{rank * rows};
  matrix_view<float> const matrix{values.span().data(), rows, width};
  int const r                       = static_cast<int>(rank);
  std::span<float const> const from = right.span(), product = left.span();
  REQUIRE(left_factor(on.exec, matrix, r, from, left.span()) == status{});
  CHECK(left.read() == sums);
  REQUIRE(orthogonalize(on.exec, robust_cholesky_qr2{}, left.span(), r) == status{});
  REQUIRE(right_factor(on.exec, matrix, r, product, right.span()) == status{});
  CHECK(right.read() == want);
}

template <class Placement>
void check_low_rank_arguments(Placement const& on)
{
  using array = typename Placement::template array<float>;
  std::vector<float> const ones(12, 1.0f);
  array const values{ones}, left{std::vector<float>(6, 1.0f)}, right{std::vector<float>(8, 1.0f)};
  auto const refuses = [&](status const& s, std::string_view names) {
    CAPTURE(names);
    CHECK(s.code == error_code::invalid_argument);
    CHECK(s.message.find(names) != std::string_view::npos);
    CHECK(values.read() == ones);
    CHECK(left.read() == std::vector<float>(6, 1.0f));
    CHECK(right.read() == std::vector<float>(8, 1.0f));
  };
  std::span<float> const none{static_cast<float*>(nullptr), 12};
  auto const make = [&](std::span<float> factor, int columns) {
    return orthogonalize(on.exec, gram_schmidt{}, factor, columns);
  };
  refuses(make(values.span(), 0), "columns must be");
  refuses(make(values.span(), 65), "columns must be");
  refuses(make(values.span(), 5), "factors have not");
  refuses(make(none, 2), "factors is a null");
  refuses(orthogonalize(on.exec, gram_schmidt{}, values.span(), 2, 0), "count must be");
  refuses(orthogonalize(on.exec, gram_schmidt{}, values.span(), 2, 5), "factors have not");
  auto const iterate = [&](float const* matrix, int rank, std::span<float> p, std::span<float> q) {
    return power_iteration(on.exec, gram_schmidt{}, matrix_view<float>{matrix, 3, 4}, rank, p, q);
  };
  float const* const m = values.span().data();
  refuses(iterate(m, 0, left.span(), right.span()), "rank must be");
  refuses(iterate(m, 3, left.span(), right.span()), "left has not");
  refuses(iterate(m, 2, left.span(), right.span().first(7)), "right has not");
  refuses(iterate(nullptr, 2, left.span(), right.span()), "matrix is a null");
  refuses(iterate(m, 2, none.first(6), right.span()), "left is a null");
  refuses(iterate(m, 1, right.span().first(3), right.span().subspan(2, 4)), "left overlaps right");
  refuses(iterate(m, 2, values.span().first(6), right.span()), "a factor overlaps matrix");
}

}  // namespace tersum::tests
