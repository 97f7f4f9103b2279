// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rounds a gradient to 16 bits with tersum, to show that the project finds it.

#include <tersum/tersum.hpp>

#include <cstdio>

int main()
{
  std::printf(
    "tersum %d.%d.%d\n", TERSUM_VERSION_MAJOR, TERSUM_VERSION_MINOR, TERSUM_VERSION_PATCH);
  for (float const gradient : {0.1f, -2.5f, 1e-8f}) {
    std::printf("%g as half: %g\n",
                static_cast<double>(gradient),
                static_cast<double>(tersum::to_float(tersum::to_half(gradient))));
  }
  return 0;
}
