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
#include <deque>
#include <span>
#include <string_view>
#include <vector>

namespace tersum::tests {

//! One factor alone.
template <class Placement, class Orthogonalizer>
[[nodiscard]] status make_orthonormal(Placement const& on,
                                      Orthogonalizer const& by,
                                      std::span<float> factor,
                                      int columns)
{
  factor_view const one{factor, columns};
  return orthogonalize(on.exec, by, std::span{&one, 1});
}

template <class Orthogonalizer, class Placement>
void check_orthogonalize(Placement const& on, std::size_t length, int columns)
{
  CAPTURE(length);
  CAPTURE(columns);
  auto const k      = static_cast<std::size_t>(columns);
  auto const before = normal_gradients(1, length * k, 8)[0];
  typename Placement::template array<float> const factor{before};
  REQUIRE(make_orthonormal(on, Orthogonalizer{}, factor.span(), columns) == status{});
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

//! Factors of a list of any sizes, more than one launch takes, are those of as many calls.
template <class Placement>
void check_list(Placement const& on)
{
  using array = typename Placement::template array<float>;
  std::vector<std::vector<float>> before;
  std::deque<array> arrays;
  std::vector<int> ranks;
  for (unsigned i = 0; i < 66; ++i) {
    std::size_t const length = i == 1 ? 150 : 1 + 3 * i % 11;
    ranks.push_back(i == 1 ? 17 : static_cast<int>(1 + i % 3));
    before.push_back(normal_gradients(1, length * static_cast<unsigned>(ranks[i]), 20 + i)[0]);
    arrays.emplace_back(before[i]);
  }
  std::vector<factor_view> list;
  for (std::size_t i = 0; i < arrays.size(); ++i) { list.push_back({arrays[i].span(), ranks[i]}); }
  std::span<factor_view const> const all{list};
  REQUIRE(orthogonalize(on.exec, robust_cholesky_qr2{}, all) == status{});
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    CAPTURE(i);
    array const alone{before[i]};
    REQUIRE(make_orthonormal(on, robust_cholesky_qr2{}, alone.span(), ranks[i]) == status{});
    CHECK(alone.read() == arrays[i].read());
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

//! @brief The product in the order of docs/low_rank.md: parts of 64 terms by fused multiply-adds, the parts of a slice, slices.
[[nodiscard]] inline std::vector<float> ordered_product(std::vector<float> const& matrix,
                                                        std::size_t rows,
                                                        std::size_t width,
                                                        bool of_rows,
                                                        std::vector<float> const& from,
                                                        std::size_t rank)
{
  std::size_t const length = of_rows ? rows : width, terms = of_rows ? width : rows;
  std::size_t const blocks = (length + 63) / 64;
  std::size_t slice        = terms + 1;
  if (terms >= 512) {
    // The longest power of two with 192 blocks, but 32 at least.
    slice = 32;
    for (std::size_t longer = 64; longer < 2 * terms; longer *= 2) {
      if (blocks * ((terms + longer - 1) / longer) >= 192) { slice = longer; }
    }
  }
  std::vector<float> to(length * rank);
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::size_t const k = i / length, lane = i % length;
    float total = 0;
    for (std::size_t begin = 0; begin < terms; begin += slice) {
      float sum = 0;
      for (std::size_t at = begin; at < std::min(begin + slice, terms); at += 64) {
        float part = 0;
        for (std::size_t t = at; t < std::min({at + 64, begin + slice, terms}); ++t) {
          float const m = matrix[of_rows ? lane * width + t : t * width + lane];
          part          = std::fma(from[k * terms + t], m, part);
        }
        sum += part;
      }
      total += sum;
    }
    to[i] = total;
  }
  return to;
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
  factored_matrix<float> const shape{{nullptr, rows, width}, rank, {}, {}};
  std::size_t const room = product_workspace_bytes(std::span{&shape, 1});
  // With a workspace the work is divided, which changes no bit.
  for (std::size_t const bytes : {std::size_t{0}, room}) {
    CAPTURE(bytes);
    array const values{m, bytes == 0 ? 1u : 0u}, right{q}, left{rows * k}, again{width * k};
    array const workspace{bytes / sizeof(float)};
    auto const bytes_of = std::as_writable_bytes(workspace.span());
    matrix_view<float> const matrix{values.span().data(), rows, width};
    factored_matrix<float> const of_q{matrix, rank, left.span(), right.span()};
    factored_matrix<float> const of_p{matrix, rank, left.span(), again.span()};
    REQUIRE(left_factors(on.exec, std::span{&of_q, 1}, bytes_of) == status{});
    auto const p = left.read();
    CHECK(product_error(m, rows, width, true, q, p) <= 1);
    CHECK(p == ordered_product(m, rows, width, true, q, k));
    REQUIRE(right_factors(on.exec, std::span{&of_p, 1}, bytes_of) == status{});
    CHECK(product_error(m, rows, width, false, p, again.read()) <= 1);
    CHECK(again.read() == ordered_product(m, rows, width, false, p, k));
    if (room == 0) { break; }
  }
}

//! Iterations of a list, more than one launch takes, are those of as many calls.
template <class Placement>
void check_power_iterations(Placement const& on)
{
  using array = typename Placement::template array<float>;
  struct shape {
    std::size_t rows, columns;
    int rank;
  };
  std::vector<shape> shapes{{70, 520, 3}, {1, 600, 1}, {700, 1, 1}, {513, 66, 9}};
  while (shapes.size() < 34) { shapes.push_back({1 + shapes.size(), 40 - shapes.size(), 1}); }
  std::deque<array> values, left, right;
  std::vector<std::vector<float>> start;
  std::vector<factored_matrix<float>> list;
  for (auto const [rows, columns, rank] : shapes) {
    auto const seed = static_cast<unsigned>(values.size());
    auto const k    = static_cast<std::size_t>(rank);
    start.push_back(normal_gradients(1, columns * k, 40 + seed)[0]);
    values.emplace_back(normal_gradients(1, rows * columns, 80 + seed)[0]);
    left.emplace_back(rows * k);
    right.emplace_back(start.back());
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    auto const [rows, columns, rank] = shapes[i];
    list.push_back(
      {{values[i].span().data(), rows, columns}, rank, left[i].span(), right[i].span()});
  }
  std::span<factored_matrix<float> const> const all{list};
  array const workspace{product_workspace_bytes(all) / sizeof(float)};
  REQUIRE(!workspace.span().empty());
  auto const bytes = std::as_writable_bytes(workspace.span());
  robust_cholesky_qr2 const by{};
  CHECK(power_iteration(on.exec, by, all, bytes.first(bytes.size() - 4)).message ==
        "workspace is smaller than product_workspace_bytes");
  REQUIRE(power_iteration(on.exec, by, all, bytes) == status{});
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    CAPTURE(i);
    array const p{left[i].span().size()}, q{start[i]};
    factored_matrix<float> const one{list[i].matrix, list[i].rank, p.span(), q.span()};
    REQUIRE(power_iteration(on.exec, by, std::span{&one, 1}) == status{});
    CHECK(left[i].read() == p.read());
    CHECK(right[i].read() == q.read());
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
  // [power_iteration]
  robust_cholesky_qr2 const by{};
  matrix_view<float> const matrix{values.span().data(), 70, 65};  // rows, columns
  factored_matrix<float> const factored{matrix, 2, left.span(), right.span()};
  for (int step = 0; step < 5; ++step) {
    REQUIRE(power_iteration(on.exec, by, std::span{&factored, 1}) == status{});
  }
  // [power_iteration]
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
  auto const* const warm = reinterpret_cast<float const*>(states.data() + plan.offset("warm"));
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
  int const r = static_cast<int>(rank);
  factored_matrix<float> const all[]{{matrix, r, left.span(), right.span()}};
  std::span<factored_matrix<float> const> const batch{all};
  // [orthogonalize]
  REQUIRE(left_factors(on.exec, batch) == status{});
  CHECK(left.read() == sums);  // which ranks add up
  factor_view const p[]{{left.span(), r}};
  REQUIRE(orthogonalize(on.exec, robust_cholesky_qr2{}, p) == status{});
  REQUIRE(right_factors(on.exec, batch) == status{});
  // [orthogonalize]
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
    return make_orthonormal(on, gram_schmidt{}, factor, columns);
  };
  refuses(make(values.span(), 0), "columns must be");
  refuses(make(values.span(), 65), "columns must be");
  refuses(make(values.span(), 5), "factors have not");
  refuses(make(none, 2), "factors is a null");
  auto const iterate = [&](float const* matrix, int rank, std::span<float> p, std::span<float> q) {
    factored_matrix<float> const one{{matrix, 3, 4}, rank, p, q};
    return power_iteration(on.exec, gram_schmidt{}, std::span{&one, 1});
  };
  float const* const m = values.span().data();
  refuses(iterate(m, 0, left.span(), right.span()), "rank must be");
  refuses(iterate(m, 3, left.span(), right.span()), "left has not");
  refuses(iterate(m, 2, left.span(), right.span().first(7)), "right has not");
  refuses(iterate(nullptr, 2, left.span(), right.span()), "matrix is a null");
  refuses(iterate(m, 2, none.first(6), right.span()), "left is a null");
  refuses(iterate(m, 1, right.span().first(3), right.span().subspan(2, 4)), "left overlaps right");
  refuses(iterate(m, 2, values.span().first(6), right.span()), "a factor overlaps matrix");
  auto const multiply = [&](std::span<std::byte> workspace) {
    factored_matrix<float> const one{{m, 3, 4}, 2, left.span(), right.span()};
    return left_factors(on.exec, std::span{&one, 1}, workspace);
  };
  refuses(multiply({static_cast<std::byte*>(nullptr), 4}), "workspace is a null");
  refuses(multiply(std::as_writable_bytes(left.span())), "workspace overlaps");
  std::span<factored_matrix<float> const> const none_of_all{};
  CHECK(power_iteration(on.exec, gram_schmidt{}, none_of_all) == status{});
}

}  // namespace tersum::tests
