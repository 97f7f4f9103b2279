// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Orthonormal columns and factors of matrices on any executor, against double.

#pragma once

#include "placed_array.hpp"
#include "support/exchange_fixture.hpp"
#include "support/known_matrix.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/device/orthogonalize.hpp>
#include <tersum/device/power_iteration.hpp>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
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
  // [orthogonalize]
  factor_view const factors[]{{factor.span(), columns}};
  REQUIRE(orthogonalize(on.exec, Orthogonalizer{}, factors) == status{});
  // [orthogonalize]
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

//! @brief State, workspace and matrices of one rank in an executor's memory.
template <class Placement, int Rank>
struct iterated {
  using codec_type =
    low_rank_codec<low_rank<Rank>, cast<float>, low_rank_schedule::paired, no_feedback>;
  template <class T>
  using array = typename Placement::template array<T>;

  Placement const& on;
  bucket const& shapes;

  //! None of the matrices bypasses.
  [[nodiscard]] plan<codec_type> plan_of(world const& ranks) const
  {
    layout all         = shapes.gradient();
    all.bypass_below   = 0;
    all.bypass_vectors = false;
    return codec_type{.low_rank = {.least_saving = 0}}.plan(all, ranks);
  }

  plan<codec_type> of       = plan_of(world{});
  std::vector<float> values = normal_gradients(1, of.coordinates(), 2)[0];
  array<float> matrices{values, 1};
  array<std::byte> kept{of.state_bytes()}, room{of.workspace_bytes()};

  [[nodiscard]] status initialize() const { return tersum::initialize(on.exec, of, state(), 3); }
  [[nodiscard]] status operator()() const
  {
    return power_iteration(on.exec, of, matrices.span(), state(), workspace());
  }
  [[nodiscard]] std::span<std::byte> state() const { return kept.span(); }
  [[nodiscard]] std::span<std::byte> workspace() const { return room.span(); }

  //! So many floats that begin at `first`, which lies in the workspace or in the state.
  [[nodiscard]] static std::vector<float> read(array<std::byte> const& memory,
                                               float const* first,
                                               std::size_t count)
  {
    auto const bytes = memory.read();
    auto const begin = reinterpret_cast<std::byte const*>(first) - memory.span().data();
    std::vector<float> out(count);
    std::memcpy(out.data(), bytes.data() + begin, count * sizeof(float));
    return out;
  }
  [[nodiscard]] std::vector<float> warm() const
  {
    auto const* const first = reinterpret_cast<float const*>(state().data() + of.offset("warm"));
    return read(kept, first, of.factor_elements(1));
  }
  [[nodiscard]] std::vector<float> left() const
  {
    auto const all = left_factors(of, workspace());
    return read(room, all.data(), all.size());
  }
  [[nodiscard]] std::vector<float> right() const
  {
    auto const all = right_factors(of, workspace());
    return read(room, all.data(), all.size());
  }
};

//! A turn's factors are the products of each matrix with its factor of the turn before.
inline void check_turn(std::vector<float> const& values,
                       auto const& plan,
                       int turn,
                       std::vector<float> const& before,
                       std::vector<float> const& after)
{
  plan.for_each_matrix([&](matrix_record const& m) {
    CAPTURE(m.rows);
    CAPTURE(m.columns);
    auto const part = [&](std::vector<float> const& all, std::uint64_t first, std::uint64_t count) {
      auto const begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    auto const matrix = part(values, m.offset, m.rows * m.columns);
    auto const from   = part(before, m.slot[1 - turn], m.rank * m.length(1 - turn));
    auto const to     = part(after, m.slot[turn], m.rank * m.length(turn));
    CHECK(to == ordered_product(matrix, m.rows, m.columns, turn == 0, from, m.rank));
  });
}

//! Products of all matrices of a bucket, by the parts of an exchange and by an iteration.
template <int Rank, class Placement>
void check_products(Placement const& on, std::vector<bucket::shape> const& shapes)
{
  CAPTURE(Rank);
  bucket const all{shapes};
  iterated<Placement, Rank> const run{on, all};
  REQUIRE(run.initialize() == status{});
  REQUIRE(run.of.chunks() == shapes.size());
  for (int step = 0; step < 2; ++step) {
    auto const warm = run.warm();
    REQUIRE(measure(on.exec, run.of, run.matrices.span(), run.state(), run.workspace()) ==
            status{});
    auto const sums = agreed_wire(run.of, run.workspace());
    check_turn(run.values, run.of, 0, warm, run.read(run.room, sums.data, sums.count));
    REQUIRE(run() == status{});
    check_turn(run.values, run.of, 1, run.left(), run.right());
  }
}

//! Of a matrix of known singular values the iteration finds the largest.
template <class Placement>
void check_power_iteration(Placement const& on)
{
  known_matrix const known{70, 65, {8.0, 4.0, .5, .25}, 11};
  typename Placement::template array<float> const matrix{known.dense()};
  auto const dense = known.dense();
  auto const bytes = [](std::size_t count) {
    return typename Placement::template array<std::byte>{count};
  };
  // [power_iteration]
  tensor const shape[] = {{.rows = 70, .columns = 65}};
  low_rank_codec<low_rank<2>, cast<float>, low_rank_schedule::paired, no_feedback> const codec{};
  auto const plan      = codec.plan(layout{70 * 65, shape}, world{});
  auto const state     = bytes(plan.state_bytes());  // which keeps Q
  auto const workspace = bytes(plan.workspace_bytes());
  REQUIRE(initialize(on.exec, plan, state.span(), 4) == status{});
  for (int step = 0; step < 5; ++step) {
    REQUIRE(power_iteration(on.exec, plan, matrix.span(), state.span(), workspace.span()) ==
            status{});
  }
  auto const left  = left_factors(plan, workspace.span()),
             right = right_factors(plan, workspace.span());
  // [power_iteration]
  using run    = iterated<Placement, 2>;
  auto const p = run::read(workspace, left.data(), left.size());
  auto const q = run::read(workspace, right.data(), right.size());
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

template <class Placement>
void check_low_rank_arguments(Placement const& on)
{
  using array = typename Placement::template array<float>;
  std::vector<float> const ones(12, 1.0f);
  array const values{ones};
  auto const refuses = [&](status const& s, std::string_view names) {
    CAPTURE(names);
    CHECK(s.code == error_code::invalid_argument);
    CHECK(s.message.find(names) != std::string_view::npos);
    CHECK(values.read() == ones);
  };
  std::span<float> const none{static_cast<float*>(nullptr), 12};
  auto const make = [&](std::span<float> factor, int columns) {
    return make_orthonormal(on, gram_schmidt{}, factor, columns);
  };
  refuses(make(values.span(), 0), "columns must be");
  refuses(make(values.span(), 65), "columns must be");
  refuses(make(values.span(), 5), "factors have not");
  refuses(make(none, 2), "factors is a null");

  bucket const shapes{{{3, 4}, {2, 5}}};
  iterated<Placement, 2> const run{on, shapes};
  REQUIRE(run.initialize() == status{});
  auto const before = run.warm();
  auto const call   = [&](auto const& plan, std::span<float> matrices) {
    return power_iteration(on.exec, plan, matrices, run.state(), run.workspace());
  };
  auto const of_two = run.plan_of({.size = 2, .rank = 0});
  refuses(call(of_two, run.matrices.span()), "plan is for several ranks");
  refuses(call(run.of, values.span()), "gradient.size()");
  CHECK(run.warm() == before);

  // What is not finite moves no factor, also not that of another matrix.
  auto bad = run.values;
  bad[13]  = std::numeric_limits<float>::infinity();
  array const matrices{bad};
  REQUIRE(call(run.of, matrices.span()) == status{});
  CHECK(run.warm() == before);
  REQUIRE(run() == status{});
  CHECK(run.warm() != before);
}

}  // namespace tersum::tests
