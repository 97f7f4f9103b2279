// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel bodies of low-rank exchanges against the CPU executor.

#include "../../examples/your_own/decaying_feedback.hpp"
#include "conformance/plain_forms.hpp"
#include "support/compare_kernels.hpp"
#include "support/odd_matrices.hpp"
#include "support/sanitized.hpp"

#include <tersum/lowrank/detail/block_factor.hpp>
#include <tersum/lowrank/detail/cpu_factor.hpp>

#include <cmath>
#include <random>
#include <span>
#include <vector>

using namespace tersum;

namespace {

constexpr auto alternating = low_rank_schedule::alternating;

// Under the sanitizer one order of threads, in which neighbours do not follow each other.
constexpr std::span<emulator::thread_order const> orders =
  std::span{emulator::thread_orders}.last(tests::sanitized ? 1 : emulator::thread_orders.size());

// Makes a factor orthonormal on both back ends, in all orders of threads.
template <class Orthogonalizer, int Rank>
void compare_factor(std::vector<float> const& values, int rank)
{
  std::size_t const length = values.size() / static_cast<unsigned>(rank);
  auto want                = values;
  detail::cpu_factor reference{instruction_set::baseline, want.data(), length, rank};
  Orthogonalizer::orthogonalize(reference);
  for (emulator::thread_order const order : emulator::thread_orders) {
    auto got = values;
    emulator::launch(
      {.blocks       = 1,
       .threads      = detail::factor_threads,
       .shared_bytes = detail::block_factor<int, Rank>::shared},
      order,
      [&](auto& context) {
        using context_type = std::remove_cvref_t<decltype(context)>;
        detail::block_factor<context_type, Rank> factor{context, got.data(), length, rank};
        Orthogonalizer::orthogonalize(factor);
      });
    CAPTURE(order);
    CHECK(got == want);
  }
}

// Columns that fall by a power, the later ones near to the span of the first; zero and dependent ones when `deficient`.
std::vector<float> bad_columns(std::size_t length, int rank, bool deficient)
{
  std::mt19937 random(static_cast<unsigned>(rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(length * static_cast<unsigned>(rank));
  for (std::size_t k = 0; k < static_cast<unsigned>(rank); ++k) {
    float const size = std::pow(static_cast<float>(k + 1), -3.0f);
    for (std::size_t i = 0; i < length; ++i) {
      values[k * length + i] = values[i] + size * normal(random);
      if (deficient && k % 3 == 1) { values[k * length + i] = 0; }
      if (deficient && k % 3 == 2) { values[k * length + i] = 3 * values[i]; }
    }
  }
  return values;
}

}  // namespace

TEST_CASE("[kernels] a block of threads makes factors orthonormal to the CPU's bits")
{
  for (bool const deficient : {false, true}) {
    CAPTURE(deficient);
    compare_factor<robust_cholesky_qr2, 1>(bad_columns(1500, 1, deficient), 1);
    compare_factor<robust_cholesky_qr2, 4>(bad_columns(1100, 3, deficient), 3);
    compare_factor<robust_cholesky_qr2, 17>(bad_columns(130, 17, deficient), 17);
    compare_factor<robust_cholesky_qr2, 64>(bad_columns(129, 50, deficient), 50);
    compare_factor<robust_cholesky_qr2, 8>(bad_columns(64, 8, deficient), 8);
    compare_factor<gram_schmidt, 8>(bad_columns(101, 6, deficient), 6);
  }
}

TEST_CASE("[kernels] paired low-rank exchanges equal the CPU executor")
{
  using codec_type = low_rank_codec<low_rank<3>>;
  tests::compare_kernels<codec_type, float>({.codec           = {.low_rank = {.least_saving = 0}},
                                             .gradient        = tests::odd_matrices().gradient(),
                                             .non_finite_step = 1},
                                            orders);
  using in_halves =
    low_rank_codec<low_rank<33>, cast<half>, low_rank_schedule::paired, no_feedback>;
  tests::compare_kernels<in_halves, bfloat16>({.codec      = {.low_rank = {.least_saving = 0}},
                                               .gradient   = tests::odd_matrices().gradient(),
                                               .steps      = 2,
                                               .misaligned = true});
}

TEST_CASE("[kernels] alternating low-rank exchanges equal the CPU executor")
{
  using codec_type = low_rank_codec<low_rank<9, gram_schmidt>, cast<bfloat16>, alternating>;
  tests::compare_kernels<codec_type, half>({.gradient        = tests::odd_matrices().gradient(),
                                            .steps           = tests::sanitized ? 3 : 4,
                                            .misaligned      = true,
                                            .non_finite_step = tests::sanitized ? 1 : 2});
  using one_float       = low_rank_codec<low_rank<4>, cast<float>, alternating>;
  tensor const vector[] = {{.rows = 77}};
  tests::compare_kernels<one_float, float>(
    {.gradient = {.coordinates = 77, .tensors = vector}, .steps = 1});
  tests::compare_kernels<one_float, float>({.gradient = {}, .steps = 1});
}

TEST_CASE("[kernels] low-rank exchanges of odd ranks equal the CPU executor")
{
  using in_turns = low_rank_codec<low_rank<9>, cast<bfloat16>, alternating, no_feedback>;
  tests::compare_kernels<in_turns, half>({.gradient   = tests::odd_matrices().gradient(),
                                          .steps      = tests::sanitized ? 2 : 3,
                                          .misaligned = true});
  // Products in slices, of matrices that are divided and of others.
  static tests::bucket const sliced{{{67, 517}, {1, 30}, {513, 3}}};
  using halves_in_turns = low_rank_codec<low_rank<9>, cast<half>, alternating>;
  tests::compare_kernels<halves_in_turns, float>({.codec    = {.low_rank = {.least_saving = 0}},
                                                  .gradient = sliced.gradient(),
                                                  .world    = 1,
                                                  .steps    = 3},
                                                 orders.last(1));
}

TEST_CASE("[kernels] products in slices equal the CPU executor's")
{
  // Rows in 17 slices, columns in 17, and matrices without any.
  static tests::bucket const sliced{{{67, 517}, {1, 30}, {70, 64}, {513, 3}}};
  tests::compare_kernels<low_rank_codec<low_rank<3>>, float>(
    {.codec           = {.low_rank = {.least_saving = 0}},
     .gradient        = sliced.gradient(),
     .world           = 1,
     .steps           = 2,
     .misaligned      = true,
     .non_finite_step = 1});
  using one_round = low_rank_codec<low_rank<9, gram_schmidt>, cast<bfloat16>, alternating>;
  tests::compare_kernels<one_round, half>({.codec    = {.low_rank = {.least_saving = 0}},
                                           .gradient = sliced.gradient(),
                                           .world    = 1,
                                           .steps    = 2},
                                          orders.last(1));
}

TEST_CASE_TEMPLATE("[kernels] a product is the same if its matrix is divided and if it is not",
                   Wire,
                   float,
                   half)
{
  using codec_type = low_rank_codec<low_rank<3>, cast<Wire>>;
  static tests::bucket const sliced{{{40, 33}, {66, 545}, {600, 70}}};
  auto const plan =
    codec_type{.low_rank = {.least_saving = 0}}.plan(sliced.gradient(), {.size = 1});
  std::uint64_t const size = plan.coordinates();
  auto gradient            = tests::make_gradient<float>(size, 0, 0, false);
  std::byte const poison{0xff};
  tests::host_buffer const state(plan.state_bytes(), 0, poison);
  tests::host_buffer const workspace(plan.workspace_bytes(), 0, poison);
  REQUIRE(initialize(cpu_executor{}, plan, state.contents(), 3).ok());
  auto args = detail::make_args(plan, gradient.data(), state.contents(), workspace.contents());
  std::uint64_t const count = plan.agreed_scalars();
  auto const product        = [&](auto const& exec) {
    std::fill_n(args.parts.wire[0], count, Wire{});
    REQUIRE(exec().ok());
    auto const* const bytes = reinterpret_cast<std::byte const*>(args.parts.wire[0]);
    return tests::byte_string(bytes, bytes + count * sizeof(Wire));
  };
  tests::emulated_executor const exec;
  auto const on_kernels = [&] {
    detail::launch_list launches{exec, plan, args};
    run_stage(stage::measure{}, launches);
    return launches.result();
  };
  auto const& end = plan.factor_ends();
  CHECK(end.first_product[0] > end.first_block[0]);
  auto const divided = product(on_kernels);
  CHECK(product([&] {
          return measure(cpu_executor{}, plan, gradient, state.contents(), workspace.contents());
        }) == divided);
  for (std::uint64_t i = 0; i < plan.chunks(); ++i) {
    args.table[i].first_product[0] = args.table[i].first_block[0];
    args.table[i].first_partial[0] = detail::slice_placement::undivided;
  }
  args.parts.end.first_product[0] = end.first_block[0];
  CHECK(product([&] { return exec.run(detail::multiply_all<true>{}, end.first_block[0], args); }) ==
        divided);
}

TEST_CASE("[kernels] low-rank exchanges keep what feedback of users says")
{
  using tests::exchange_case;
  using by_operations =
    low_rank_codec<low_rank<3>, cast<float>, alternating, tests::plain_feedback>;
  using adding        = low_rank_codec<low_rank<3>, cast<float>, alternating, error_feedback>;
  using decaying      = low_rank_codec<low_rank<3>, cast<float>, alternating, decaying_feedback>;
  auto const gradient = tests::odd_matrices().gradient();
  exchange_case<by_operations, float> const mine{.gradient = gradient, .non_finite_step = 1};
  exchange_case<adding, float> const reference{.gradient = gradient, .non_finite_step = 1};
  exchange_case<decaying, float> const forgetting{.gradient = gradient, .non_finite_step = 1};
  using averaging = low_rank_codec<low_rank<3>, cast<float>, alternating, averaged_feedback>;
  exchange_case<averaging, float> const weighed{.gradient = gradient, .non_finite_step = 1};
  auto const kept = tests::record_reference(reference);
  CHECK(tests::difference(tests::record_reference(mine), kept) == "");
  CHECK(tests::difference(tests::record_reference(forgetting), kept) != "");
  tests::compare_kernels(forgetting);
  tests::compare_kernels(weighed);
}
