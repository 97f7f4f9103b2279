// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Links files of both compilers that all include the whole library, and compares what it answers in each.

#include "answers.hpp"

#include <cstdio>

int main()
{
  odr::answers const expected = TERSUM_ODR_ANSWERS;
  bool equal                  = odr::from_a() == expected;
#if defined(TERSUM_ODR_CUDA)
  equal = equal && odr::from_b() == expected && odr::from_c() == expected;
#endif
  if (!equal) { std::puts("the files of one program disagree"); }
  return equal ? 0 : 1;
}
