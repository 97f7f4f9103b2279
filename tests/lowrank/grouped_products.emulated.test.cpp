// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sizes and pointers for a grouped matrix multiplication, given to one that takes them as BLAS does.

#include "support/emulated_executor.hpp"
#include "support/odd_matrices.hpp"
#include "support/product_reference.hpp"

#include <tersum/lowrank/detail/grouped_products.hpp>

#include <vector>

using namespace tersum;

namespace {

using codec_type = low_rank_codec<low_rank<5>>;

// C = op(A) B + beta C, all of them column-major, as the reference BLAS defines it.
void multiply(bool transposed,
              std::int64_t m,
              std::int64_t n,
              std::int64_t k,
              float const* a,
              std::int64_t a_leads,
              float const* b,
              std::int64_t b_leads,
              float beta,
              float* c,
              std::int64_t c_leads)
{
  for (std::int64_t column = 0; column < n; ++column) {
    for (std::int64_t row = 0; row < m; ++row) {
      float sum = 0;
      for (std::int64_t t = 0; t < k; ++t) {
        sum += (transposed ? a[t + row * a_leads] : a[row + t * a_leads]) * b[t + column * b_leads];
      }
      float& to = c[row + column * c_leads];
      to        = beta == 0 ? sum : sum + beta * to;
    }
  }
}

}  // namespace

TEST_CASE("[kernels] grouped products are those of all matrices with their factors")
{
  layout const shape  = tests::odd_matrices().gradient();
  auto const plan     = codec_type{.low_rank = {.least_saving = 0}}.plan(shape, {});
  auto gradient       = tests::make_gradient<float>(shape.coordinates, 0, 0, false);
  auto const residual = tests::make_gradient<float>(shape.coordinates, 1, 0, false);
  std::byte const poison{0xff};
  tests::host_buffer const state(plan.state_bytes(), 0, poison);
  tests::host_buffer const workspace(plan.workspace_bytes(), 0, poison);
  tests::host_buffer const table(plan.chunks() * detail::product_pointers::bytes, 0, poison);
  REQUIRE(initialize(cpu_executor{}, plan, state.contents(), 3).ok());
  auto const args =
    detail::make_args(plan, gradient.data(), state.contents(), workspace.contents());
  std::copy(residual.begin(), residual.end(), args.residual);

  tests::emulated_executor const exec;
  detail::product_pointers const pointers{table.contents().data(), plan.chunks()};
  int calls          = 0;
  auto const product = [&](detail::product_groups const& g, float const** matrices, bool adds) {
    ++calls;
    std::uint64_t which = g.first;
    for (int i = 0; i < g.count; ++i) {
      for (std::int64_t j = 0; j < g.size[i]; ++j, ++which) {
        multiply(g.transposed,
                 g.m[i],
                 g.n[i],
                 g.k[i],
                 matrices[which],
                 g.transposed ? g.k[i] : g.m[i],
                 pointers.from[which],
                 g.k[i],
                 adds ? 1.0f : 0.0f,
                 pointers.to[which],
                 g.m[i]);
      }
    }
    CHECK(which == plan.chunks());
    return status{};
  };
  detail::grouped_executor<tests::emulated_executor, codec_type, decltype(product)> const grouped{
    exec, plan, pointers, product};
  detail::launch_list launches{grouped, plan, args};

  REQUIRE(run_stage(stage::measure{}, launches).ok());
  CHECK(tests::product_error(plan, 0, gradient, residual, args.parts.warm, args.parts.wire[0]) <=
        1);
  REQUIRE(run_stage(stage::orthonormalize{}, launches).ok());
  REQUIRE(run_stage(stage::encode{}, launches).ok());
  CHECK(tests::product_error(
          plan, 1, gradient, residual, args.parts.factor[0], args.parts.wire[1]) <= 1);
  CHECK(calls == 4);
  // The reference tells other products from these.
  CHECK(tests::product_error(
          plan, 1, gradient, gradient, args.parts.factor[0], args.parts.wire[1]) > 1);
}

TEST_CASE("[lowrank] like matrices in a row are one group, and groups come in batches")
{
  std::vector<tensor> tensors;
  std::uint64_t end = 0;
  auto const add    = [&](std::uint64_t rows, std::uint64_t columns) {
    tensors.push_back({.rows = rows, .columns = columns, .offset = end});
    end += rows * columns;
  };
  for (std::uint64_t i = 0; i < 70; ++i) { add(100 + i, 50); }
  for (int i = 0; i < 3; ++i) { add(300, 40); }
  add(50, 100);
  auto const plan = codec_type{}.plan(layout{end, tensors}, {});
  std::vector<std::uint64_t> first;
  std::vector<int> counts;
  std::vector<std::int64_t> sizes;
  REQUIRE(detail::for_product_groups(plan, 1, [&](detail::product_groups const& g) {
            CHECK_FALSE(g.transposed);
            first.push_back(g.first);
            counts.push_back(g.count);
            sizes.insert(sizes.end(), g.size, g.size + g.count);
            for (int i = 0; i < g.count; ++i) { CHECK(g.n[i] == 5); }
            return status{};
          }).ok());
  CHECK(first == std::vector<std::uint64_t>{0, 64});
  CHECK(counts == std::vector<int>{64, 8});
  std::vector<std::int64_t> want(72, 1);
  want[70] = 3;
  CHECK(sizes == want);
  // What one call answers ends the product.
  int calls = 0;
  CHECK(detail::for_product_groups(plan, 0, [&](detail::product_groups const&) {
          ++calls;
          return status{error_code::execution_failed, "no"};
        }).code == error_code::execution_failed);
  CHECK(calls == 1);
}
