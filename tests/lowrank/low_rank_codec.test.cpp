// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Low-rank exchanges against theory: power iteration, exact recovery, feedback; and their contracts.

#include "support/bad_input.hpp"
#include "support/exchange_fixture.hpp"
#include "support/known_matrix.hpp"
#include "support/loopback_run.hpp"
#include "support/sanitized.hpp"

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/presets.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using namespace tersum;

namespace {

constexpr auto alternating = low_rank_schedule::alternating;
constexpr auto paired      = low_rank_schedule::paired;

// One tensor of a known matrix, never bypassed.
template <int Rank,
          class Wire                 = float,
          low_rank_schedule Schedule = paired,
          class Feedback             = no_feedback>
constexpr low_rank_codec<low_rank<Rank>, cast<Wire>, Schedule, Feedback> always{
  .low_rank = {.least_saving = 0}};

template <int Rank, low_rank_schedule Schedule = paired>
using with_feedback = low_rank_codec<low_rank<Rank>, cast<float>, Schedule>;

std::vector<tensor> one_matrix(tests::known_matrix const& m)
{
  return {{.rows = m.rows, .columns = m.width}};
}

double square(std::vector<float> const& a)
{
  double sum = 0;
  for (float const v : a) { sum += static_cast<double>(v) * static_cast<double>(v); }
  return sum;
}

// Columns of a factor in double.
tests::columns columns_of(float const* values, std::size_t length, std::size_t rank)
{
  tests::columns out;
  for (std::size_t k = 0; k < rank; ++k) {
    out.emplace_back(values + k * length, values + (k + 1) * length);
  }
  return out;
}

// Tangents of the angles between the span of `rank` float columns and that of the first `rank` of a basis: the Frobenius
// norm of (others^T X) (first^T X)^-1.
double tangent(float const* values,
               std::size_t length,
               std::size_t rank,
               tests::columns const& basis)
{
  tests::columns x = columns_of(values, length, rank);
  // Column operations that make first^T X the identity; then the rest is the answer.
  for (std::size_t k = 0; k < rank; ++k) {
    std::size_t pivot = k;
    for (std::size_t l = k; l < rank; ++l) {
      if (std::fabs(tests::dot(basis[k], x[l])) > std::fabs(tests::dot(basis[k], x[pivot]))) {
        pivot = l;
      }
    }
    std::swap(x[k], x[pivot]);
    double const scale = 1 / tests::dot(basis[k], x[k]);
    for (double& v : x[k]) { v *= scale; }
    for (std::size_t l = 0; l < rank; ++l) {
      double const share = l == k ? 0 : tests::dot(basis[k], x[l]);
      for (std::size_t i = 0; i < length; ++i) { x[l][i] -= share * x[k][i]; }
    }
  }
  double sum = 0;
  for (auto const& column : x) {
    sum += tests::dot(column, column);
    for (std::size_t k = 0; k < rank; ++k) { sum -= std::pow(tests::dot(basis[k], column), 2); }
  }
  return std::sqrt(std::max(sum, 0.0));
}

}  // namespace

TEST_CASE(
  "[lowrank] power iteration converges to the truncated singular value decomposition as theory says")
{
  constexpr int rank = 3;
  tests::known_matrix const known(96, 80, {4, 3, 2, 1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2}, 21);
  auto const tensors = one_matrix(known);
  auto const matrix  = known.dense();
  auto const& codec  = always<rank>;
  tests::loopback_run run(codec, layout{matrix.size(), tensors}, 1, 5);
  auto const* const warm =
    reinterpret_cast<float const*>(run.state().data() + run.plan().offset("warm"));
  auto const* const p =
    reinterpret_cast<float const*>(run.workspace().data() + run.plan().offset("even_factor"));

  // The span of P after k steps is (M M^T)^(k-1) M Q: every step multiplies the tangents by (s_4 / s_3)^2. Products in
  // float32 put errors of at most (64 + 2) 2^-24 of the largest singular value into the directions of the third.
  double const start = tangent(warm, known.width, rank, known.v);
  double const ratio = known.values[rank] / known.values[rank - 1];
  double const floor = 2 * std::sqrt(3.0) * 66 * 0x1p-24 * known.values[0] /
                       known.values[rank - 1] / (1 - ratio * ratio);
  double tail = 0;
  for (std::size_t i = rank; i < known.values.size(); ++i) {
    tail += known.values[i] * known.values[i];
  }
  for (int step = 0; step < 14; ++step) {
    auto const& out   = run.exchange({matrix})[0];
    double const now  = tangent(p, known.rows, rank, known.u);
    double const most = start * std::pow(ratio, 2 * step + 1) + floor;
    CAPTURE(step);
    CHECK(now <= most);
    // |M - P P^T M|^2 is the tail and at most what the angles turn away of the leading part.
    double lost = 0;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      lost += std::pow(static_cast<double>(matrix[i]) - static_cast<double>(out[i]), 2);
    }
    double const leading = known.values[0] * known.values[0];
    CHECK(lost >= tail * (1 - 1e-4));
    CHECK(lost <= tail + leading * most * most + 1e-4 * tail);
  }
}

TEST_CASE_TEMPLATE(
  "[lowrank] a matrix of no more than the rank is recovered by one power iteration",
  Rank,
  std::integral_constant<int, 1>,
  std::integral_constant<int, 4>,
  std::integral_constant<int, 16>,
  std::integral_constant<int, 64>)
{
  constexpr int rank = Rank::value;
  for (std::size_t const of_matrix : {1u, 4u}) {
    if (of_matrix > rank) { continue; }
    tests::known_matrix const known(130, 70, std::vector<double>(of_matrix, 1.0), 31);
    auto const tensors = one_matrix(known);
    auto const matrix  = known.dense();
    auto const check   = [&](auto const& codec) {
      tests::loopback_run run(codec, layout{matrix.size(), tensors}, 2, 6);
      for (int step = 0; step < 5; ++step) {
        auto const& out = run.exchange({matrix, matrix});
        // Rounding of P is at most (64 + 2) 2^-24 for each column of a factor whose condition, that of a random square of the
        // matrix' rank, is below 100 for this seed. An alternating exchange is half of an iteration.
        if (step > 0 || run.plan().agreed_bytes() > 0) {
          CHECK(tests::nmse({matrix, matrix}, out[0]) <= std::pow(100 * 66 * 0x1p-24, 2));
        }
        CHECK(out[0] == out[1]);
      }
    };
    check(always<rank>);
    check(always<rank, float, alternating>);
  }
}

TEST_CASE_TEMPLATE("[lowrank] with feedback the estimates of a constant gradient average to it",
                   Codec,
                   with_feedback<2>,
                   with_feedback<2, alternating>)
{
  tests::known_matrix const known(60, 50, tests::power_law(50, 0.5), 41);
  auto const tensors = one_matrix(known);
  std::vector<std::vector<float>> const in{known.dense(0.02, 1), known.dense(0.02, 2)};
  tests::loopback_run run(Codec{}, layout{in[0].size(), tensors}, 2, 7);
  REQUIRE(run.plan().chunks() == 1);
  std::size_t const d = in[0].size();
  std::vector<double> sum(d);
  double early = 0;
  for (int step = 1; step <= 96; ++step) {
    auto const& out = run.exchange(in);
    for (std::size_t i = 0; i < d; ++i) { sum[i] += static_cast<double>(out[0][i]); }
    // Nothing is lost: estimates and residuals add up to all gradients. Each step rounds a residual twice.
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < d; ++i) {
      double const residual =
        (static_cast<double>(run.residual(0)[i]) + static_cast<double>(run.residual(1)[i])) / 2;
      double const gradient = (static_cast<double>(in[0][i]) + static_cast<double>(in[1][i])) / 2;
      worst                 = std::max(worst, std::fabs(sum[i] + residual - step * gradient));
      largest               = std::max(
        largest,
        static_cast<double>(std::fabs(run.residual(0)[i]) + std::fabs(run.residual(1)[i])));
    }
    REQUIRE(worst <= 2 * step * 0x1p-24 * (4 * largest + 4));
    double error = 0;
    for (std::size_t i = 0; i < d; ++i) {
      double const gradient = (static_cast<double>(in[0][i]) + static_cast<double>(in[1][i])) / 2;
      error += std::pow(sum[i] / step - gradient, 2);
    }
    if (step == 24) { early = std::sqrt(error); }
    // A bounded residual is T times as small in the average of T steps; half of that is asked for.
    if (step == 96) { CHECK(std::sqrt(error) <= early / 2); }
  }
}

TEST_CASE_TEMPLATE("[lowrank] every step has orthonormal or zero columns, for every spectrum",
                   Rank,
                   std::integral_constant<int, 1>,
                   std::integral_constant<int, 4>,
                   std::integral_constant<int, 64>)
{
  constexpr int rank = Rank::value;
  std::vector<std::vector<float>> matrices;
  int const steps = tests::sanitized ? 2 : 6;
  for (double const power : {1.0, 2.0, 3.0, 4.0}) {
    if (tests::sanitized && power != 4) { continue; }
    tests::known_matrix const known(150, 130, tests::power_law(130, power), 51);
    matrices.push_back(known.dense());
    matrices.push_back(known.dense(1e-3));
  }
  matrices.push_back(tests::known_matrix(150, 130, std::vector<double>(32, 1.0), 52).dense());
  matrices.push_back(std::vector<float>(std::size_t{150} * 130, 0.0f));
  std::vector<tensor> const tensors{{.rows = 150, .columns = 130}};
  for (std::size_t which = 0; which < matrices.size(); ++which) {
    auto const& matrix = matrices[which];
    CAPTURE(which);
    auto const check = [&](auto const& codec) {
      tests::loopback_run run(codec, layout{matrix.size(), tensors}, 1, 8);
      auto const& plan = run.plan();
      auto const* const factor =
        reinterpret_cast<float const*>(run.workspace().data() + plan.offset("even_factor"));
      for (int step = 0; step < steps; ++step) {
        auto const& out = run.exchange({matrix})[0];
        // Paired: P. Alternating: Q in even exchanges, P in odd ones.
        bool const is_p          = plan.agreed_bytes() > 0 || step % 2 == 1;
        std::size_t const length = is_p ? 150 : 130;
        CHECK(tests::orthogonality_error(factor, length, rank) <= 1e-5);
        CHECK(std::all_of(out.begin(), out.end(), [](float v) { return std::isfinite(v); }));
        CHECK_FALSE(run.header().last_was_non_finite());
      }
    };
    check(always<rank, float, paired, error_feedback>);
    check(always<rank, float, alternating, error_feedback>);
    check(low_rank_codec<low_rank<rank, gram_schmidt>>{.low_rank = {.least_saving = 0}});
  }
}

TEST_CASE("[lowrank] columns that died with a zero gradient start again")
{
  tests::known_matrix const known(40, 30, std::vector<double>(4, 1.0), 61);
  auto const tensors = one_matrix(known);
  auto const matrix  = known.dense();
  std::vector<float> const zero(matrix.size(), 0.0f);
  auto const check = [&](auto const& codec) {
    tests::loopback_run run(codec, layout{matrix.size(), tensors}, 1, 9);
    for (int step = 0; step < 3; ++step) { CHECK(square(run.exchange({zero})[0]) == 0); }
    if (run.plan().agreed_bytes() == 0) { run.exchange({matrix}); }  // half of an iteration
    CHECK(tests::nmse({matrix}, run.exchange({matrix})[0]) <= std::pow(100 * 66 * 0x1p-24, 2));
  };
  check(always<4>);
  check(always<4, float, alternating>);
}

namespace {

// Matrices that travel, one that does not, vectors, tails of all kinds.
std::vector<tensor> bucket()
{
  std::vector<tensor> const shapes{{"a", 70, 65, 0},
                                   {"b", 1, 77, 0},
                                   {"c", 129, 40, 0},
                                   {"d", 3, 9, 0},
                                   {"e", 33, 200, 0},
                                   {"f", 50, 1, 0}};
  std::vector<tensor> out;
  std::uint64_t offset = 0;
  for (tensor t : shapes) {
    t.offset = offset;
    offset += t.size();
    out.push_back(t);
  }
  return out;
}

constexpr std::uint64_t bucket_size = 70 * 65 + 77 + 129 * 40 + 27 + 33 * 200 + 50;

}  // namespace

TEST_CASE_TEMPLATE("[lowrank] all ranks end with equal bits, and bypassing tensors are exact",
                   Codec,
                   low_rank_codec<low_rank<4>>,
                   low_rank_codec<low_rank<4>, cast<half>>,
                   low_rank_codec<low_rank<4>, cast<bfloat16>, alternating>,
                   with_feedback<4, alternating>)
{
  auto const tensors = bucket();
  tests::loopback_run run(Codec{}, layout{bucket_size, tensors}, 4, 10);
  REQUIRE(run.plan().chunks() == 3);
  REQUIRE(run.plan().bypassed() == 77 + 27 + 50);
  for (int step = 0; step < 3; ++step) {
    std::vector<std::vector<float>> in;
    for (int k = 0; k < 4; ++k) {
      auto g = tests::make_gradient<float>(bucket_size, k, step, false);
      for (tensor const& t : tensors) {
        if (t.size() > 200) { continue; }
        // Small integers: their sums are exact in every order.
        for (std::uint64_t i = 0; i < t.size(); ++i) {
          g[t.offset + i] = static_cast<float>((i * 37 + static_cast<unsigned>(k) * 11) % 64);
        }
      }
      in.push_back(g);
    }
    auto const& out = run.exchange(in);
    for (int k = 1; k < 4; ++k) {
      CHECK(std::memcmp(out[0].data(), out[static_cast<unsigned>(k)].data(), bucket_size * 4) == 0);
      CHECK(std::equal(run.state(k).begin(),
                       run.state(k).begin() +
                         static_cast<std::ptrdiff_t>(run.plan().offset("residual")),
                       run.state(0).begin()));
    }
    for (tensor const& t : tensors) {
      if (t.size() > 200) { continue; }
      for (std::uint64_t i = t.offset; i < t.offset + t.size(); ++i) {
        REQUIRE(out[0][i] == (in[0][i] + in[1][i] + in[2][i] + in[3][i]) / 4);
        REQUIRE(run.residual(1)[i] == 0);
      }
    }
  }
}

TEST_CASE_TEMPLATE("[lowrank] a 16-bit wire costs what its rounding costs", Wire, half, bfloat16)
{
  // A sum of two rounds each element once more; a factor of rank 4 has columns of norm 1 and of the singular values.
  constexpr double unit = std::is_same_v<Wire, half> ? 0x1p-11 : 0x1p-8;
  tests::known_matrix const known(90, 70, {1, 1, 1, 1}, 71);
  auto const tensors = one_matrix(known);
  auto const matrix  = known.dense();
  tests::loopback_run run(always<4, Wire>, layout{matrix.size(), tensors}, 2, 11);
  double error = 1;
  for (int step = 0; step < 4; ++step) {
    error = tests::nmse({matrix, matrix}, run.exchange({matrix, matrix})[0]);
  }
  // P is off its span by two roundings, its Q by two more; a warm Q makes the columns of P nearly orthogonal.
  CHECK(error <= std::pow(4 * unit, 2));
  CHECK(error > 0);
}

TEST_CASE_TEMPLATE(
  "[lowrank] a value that is not finite is flagged on all ranks and stays in its tensor",
  Codec,
  low_rank_codec<low_rank<4>>,
  low_rank_codec<low_rank<4>, cast<half>>,
  low_rank_codec<low_rank<4>, cast<float>, alternating>)
{
  auto const tensors = bucket();
  std::vector<std::vector<float>> in;
  for (int k = 0; k < 3; ++k) {
    in.push_back(tests::make_gradient<float>(bucket_size, k, 0, false));
  }
  for (float const bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (std::size_t const which : {0u, 1u, 2u, 4u}) {
      CAPTURE(which);
      tensor const& t = tensors[which];
      tests::loopback_run good(Codec{}, layout{bucket_size, tensors}, 3, 12);
      tests::loopback_run run(Codec{}, layout{bucket_size, tensors}, 3, 12);
      good.exchange(in);
      run.exchange(in);
      auto broken                        = in;
      broken[1][t.offset + t.size() / 2] = bad;
      std::vector<std::vector<std::byte>> before;
      for (int k = 0; k < 3; ++k) { before.emplace_back(run.state(k).begin(), run.state(k).end()); }
      auto const want = good.exchange(in);
      auto const got  = run.exchange(broken);
      for (int k = 0; k < 3; ++k) {
        CHECK(run.header(k).last_was_non_finite());
        CHECK_FALSE(good.header(k).last_was_non_finite());
        // Records, warm start and residual are as before; only the header has moved on.
        CHECK(std::equal(run.state(k).begin() + sizeof(state_header),
                         run.state(k).end(),
                         before[static_cast<unsigned>(k)].begin() + sizeof(state_header)));
        auto const& mine = got[static_cast<unsigned>(k)];
        bool only_there  = true;
        for (std::uint64_t i = 0; i < bucket_size; ++i) {
          bool const inside = i >= t.offset && i < t.offset + t.size();
          only_there = only_there && (inside ? run.plan().chunks() > 0 : mine[i] == want[0][i]);
        }
        CHECK(only_there);
        if (which != 1) { CHECK(std::isnan(mine[t.offset])); }
        CHECK_FALSE(std::isfinite(mine[t.offset + t.size() / 2]));
      }
      run.exchange(in);
      CHECK_FALSE(run.header().last_was_non_finite());
    }
  }
}

TEST_CASE_TEMPLATE("[lowrank] layouts without matrices are exact; empty ones do nothing",
                   Codec,
                   low_rank_codec<low_rank<4>>,
                   low_rank_codec<low_rank<4>, cast<float>, alternating>)
{
  std::vector<tensor> const vector{{.rows = 5}};
  tests::loopback_run vectors(Codec{}, layout{5, vector}, 2, 13);
  CHECK(vectors.exchange({{1, 2, 3, 4, 5}, {3, 2, 1, 0, 7}})[1] ==
        std::vector<float>{2, 2, 2, 2, 6});
  tests::loopback_run nothing(Codec{}, layout{}, 2, 13);
  CHECK(nothing.exchange({{}, {}})[0].empty());
  CHECK(nothing.header().step == 1);
}

TEST_CASE("[lowrank] all_reduce_mean calls the collective once a round that has elements")
{
  auto const tensors = bucket();
  std::vector<float> gradient(bucket_size, 1.0f);
  auto const count = [&](auto const& codec) {
    auto const plan = codec.plan(layout{bucket_size, tensors}, {});
    std::vector<word4> state(plan.state_bytes() / 16 + 1),
      workspace(plan.workspace_bytes() / 16 + 1);
    auto const s = std::as_writable_bytes(std::span{state});
    auto const w = std::as_writable_bytes(std::span{workspace});
    REQUIRE(initialize(cpu_executor{}, plan, s, 1).ok());
    std::vector<std::size_t> sizes;
    REQUIRE(all_reduce_mean(cpu_executor{}, plan, gradient, s, w, [&](auto wire) {
              static_assert(decltype(wire)::native);
              sizes.push_back(wire.bytes());
            }).ok());
    return sizes;
  };
  CHECK(count(low_rank_codec<low_rank<4>, cast<half>>{}) ==
        std::vector<std::size_t>{2 * 4 * (70 + 129 + 33), 4 * 154, 2 * 4 * (65 + 40 + 200)});
  CHECK(count(presets::acp_r4).size() == 2);
}

TEST_CASE("[lowrank] a wrong argument is named, and no memory is written")
{
  auto const tensors = bucket();
  tests::check_wrong_arguments(presets::acp_r4, layout{bucket_size, tensors});
}

namespace {

void orthonormalize(tests::columns& a)
{
  for (std::size_t k = 0; k < a.size(); ++k) {
    for (int twice = 0; twice < 2; ++twice) {
      for (std::size_t l = 0; l < k; ++l) {
        double const share = tests::dot(a[l], a[k]);
        for (std::size_t i = 0; i < a[k].size(); ++i) { a[k][i] -= share * a[l][i]; }
      }
    }
    double const length = std::sqrt(tests::dot(a[k], a[k]));
    for (double& v : a[k]) { v /= length; }
  }
}

// A low-rank exchange, written from the formula in double: a mean is the product of the factors of gradient and residual.
struct reference {
  std::size_t rows;
  std::size_t columns;
  tests::columns warm;  // what the next product starts from
  bool of_rows;         // whether that product has the rows
  std::vector<std::vector<double>> residual{};
  std::vector<double> whole{};  // of the last mean

  [[nodiscard]] tests::columns product(tests::columns const& by, bool rows_too) const
  {
    tests::columns out(by.size(), std::vector<double>(rows_too ? rows : columns));
    for (std::size_t k = 0; k < by.size(); ++k) {
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
          out[k][rows_too ? i : j] += whole[i * columns + j] * by[k][rows_too ? j : i];
        }
      }
    }
    return out;
  }

  std::vector<double> exchange(std::vector<std::vector<float>> const& in, bool in_turns)
  {
    std::size_t const size = rows * columns;
    residual.resize(in.size(), std::vector<double>(size));
    whole.assign(size, 0);
    for (std::size_t k = 0; k < in.size(); ++k) {
      for (std::size_t i = 0; i < size; ++i) {
        residual[k][i] += static_cast<double>(in[k][i]);
        whole[i] += residual[k][i] / static_cast<double>(in.size());
      }
    }
    tests::columns before = warm;
    if (!in_turns) { before = product(warm, true); }
    orthonormalize(before);
    bool const sends_rows = in_turns && of_rows;
    warm                  = product(before, sends_rows);
    of_rows               = in_turns ? !of_rows : of_rows;
    std::vector<double> mean(size);
    for (std::size_t i = 0; i < size; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < warm.size(); ++k) {
        sum += (sends_rows ? warm : before)[k][i / columns] *
               (sends_rows ? before : warm)[k][i % columns];
      }
      mean[i] = sum;
      for (auto& of_rank : residual) { of_rank[i] -= mean[i]; }
    }
    return mean;
  }
};

template <class Codec>
void compare_to_formula(Codec codec)
{
  constexpr bool in_turns = Codec::schedule == alternating;
  std::size_t const size  = 70 * 90;
  std::vector<tensor> const tensors{{.rows = 70, .columns = 90}};
  tests::loopback_run run(codec, layout{size, tensors}, 2, 81);
  reference want{.rows = 70, .columns = 90, .warm = {}, .of_rows = false};
  auto const* const warm =
    reinterpret_cast<float const*>(run.state().data() + run.plan().offset("warm"));
  auto const& matrix =
    *reinterpret_cast<matrix_record const*>(run.state().data() + run.plan().offset("table"));
  want.of_rows = in_turns && matrix.sends_rows(0);
  want.warm    = columns_of(warm, want.of_rows || !in_turns ? 90 : 70, Codec::rank);
  for (int step = 0; step < 4; ++step) {
    tests::known_matrix const known(
      70, 90, tests::power_law(70, 1.0), 82 + static_cast<unsigned>(step));
    std::vector<std::vector<float>> const in{known.dense(0.05, 1), known.dense(0.05, 2)};
    auto const mean = want.exchange(in, in_turns);
    auto const& out = run.exchange(in);
    double lost = 0, all = 0;
    for (std::size_t i = 0; i < size; ++i) {
      lost += std::pow(static_cast<double>(out[0][i]) - mean[i], 2);
      all += std::pow(mean[i], 2);
    }
    CAPTURE(step);
    CHECK(out[0] == out[1]);
    // 66 2^-24 for each product, times what the subspaces of a step turn by, at most 30 in these matrices.
    CHECK(std::sqrt(lost / all) <= 30 * 66 * 0x1p-24);
  }
}

}  // namespace

TEST_CASE("[lowrank] factors are what the formula says in double")
{
  SUBCASE("paired") { compare_to_formula(with_feedback<3>{.low_rank = {.least_saving = 0}}); }
  SUBCASE("in turns")
  {
    compare_to_formula(with_feedback<3, alternating>{.low_rank = {.least_saving = 0}});
  }
}
