// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The main function of every test program with CUDA: without a device it says so and exits with 77: skipped.

#define DOCTEST_CONFIG_IMPLEMENT
#include "support/run_cases.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>

int main(int argc, char** argv)
{
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: no CUDA device");
    return 77;
  }
  return tersum::tests::run_cases(argc, argv);
}
