// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products of cuBLAS are those of the matrices with their factors.

#include "support/compare_executors.cuh"
#include "support/odd_matrices.hpp"
#include "support/product_reference.hpp"

#include <tersum/interop/cublas.cuh>

namespace cublas_cuda_test {

using namespace tersum;
using namespace tersum::tests;

using codec_type = low_rank_codec<low_rank<9>>;

}  // namespace cublas_cuda_test

using namespace cublas_cuda_test;

TEST_CASE("[cublas_executor] grouped products are those of all matrices with their factors")
{
  stream const on;
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  layout const shape = odd_matrices().gradient();
  exchange_case<codec_type, float> const c{
    .codec = {.low_rank = {.least_saving = 0}}, .gradient = shape, .world = 1};
  exchange_ranks<device_buffer, codec_type, float> ranks{c, std::byte{0xff}};
  auto const r     = ranks[0];
  auto const& mine = ranks.memory()[0];
  device_buffer const table(cublas_executor::table_bytes(r.plan), 0, std::byte{0xff});
  cublas_executor const exec{cuda_executor{on.get()}, handle, table.contents()};
  CHECK(exec.check().code == error_code::invalid_argument);
  REQUIRE(cublasSetStream(handle, on.get()) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(initialize(exec, r.plan, r.state, 3).ok());

  // The first exchange leaves a residual.
  auto const floats = [](byte_string const& bytes) {
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
    return out;
  };
  for (int step = 0; step < 2; ++step) {
    auto const gradient = make_gradient<float>(shape.coordinates, 0, step, false);
    ranks.write_gradients(step);
    auto const kept =
      floats(mine.state.read(r.plan.offset("residual"), shape.coordinates * sizeof(float)));
    auto const warm =
      floats(mine.state.read(r.plan.offset("warm"), r.plan.factor_elements(1) * sizeof(float)));
    REQUIRE(measure(exec, r.plan, r.gradient, r.state, r.workspace).ok());
    auto const p = floats(mine.read(ranks.agreed()[0]));
    CHECK(product_error(r.plan, 0, gradient, kept, warm.data(), p.data()) <= 1);
    REQUIRE(encode(exec, r.plan, r.gradient, r.state, r.workspace).ok());
    auto const orthonormal = floats(mine.read(ranks.agreed()[0]));
    auto const q           = floats(mine.read(ranks.payload()[0]));
    CHECK(product_error(r.plan, 1, gradient, kept, orthonormal.data(), q.data()) <= 1);
    REQUIRE(decode(exec, r.plan, r.gradient, r.state, r.workspace).ok());
  }
  CHECK(measure(cublas_executor{cuda_executor{on.get()}, handle, {}},
                r.plan,
                r.gradient,
                r.state,
                r.workspace)
          .code == error_code::invalid_argument);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}
