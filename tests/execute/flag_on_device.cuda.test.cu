// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A kernel, an optimizer's for instance, asks a state's header whether to skip the step.

#include <tersum/state.hpp>

#include <doctest/doctest.h>

#include <cuda_runtime.h>

__global__ void ask(tersum::state_header const* header, int* skip)
{
  *skip = header->last_was_non_finite() ? 1 : 0;
}

TEST_CASE("[state] a kernel reads from the header whether the last step was finite")
{
  tersum::state_header* header = nullptr;
  int* answer                  = nullptr;
  REQUIRE(cudaMalloc(&header, sizeof *header) == cudaSuccess);
  REQUIRE(cudaMalloc(&answer, sizeof *answer) == cudaSuccess);
  for (std::uint64_t const flagged : {0, 6, 7}) {
    CAPTURE(flagged);
    tersum::state_header after{};
    after.step            = 7;
    after.non_finite_step = flagged;
    int skip              = -1;
    CHECK(cudaMemcpy(header, &after, sizeof after, cudaMemcpyHostToDevice) == cudaSuccess);
    ask<<<1, 1>>>(header, answer);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaMemcpy(&skip, answer, sizeof skip, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(skip == (flagged == 7 ? 1 : 0));
  }
  CHECK(cudaFree(header) == cudaSuccess);
  CHECK(cudaFree(answer) == cudaSuccess);
}
