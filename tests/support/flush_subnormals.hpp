// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread whose arithmetic takes subnormal floats for zeros, as frameworks and -ffast-math switch it on.

#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tersum::tests {

//! @brief While it lives, this thread flushes subnormal results to zero and takes subnormal operands for zero.
class flush_subnormals {
 public:
#if defined(__x86_64__)
  flush_subnormals() : before_{_mm_getcsr()} { set(before_ | 0x8040u); }
  ~flush_subnormals() { set(before_); }
#else
  flush_subnormals() = default;
#endif
  flush_subnormals(flush_subnormals const&)            = delete;
  flush_subnormals& operator=(flush_subnormals const&) = delete;

  //! Whether it does so here: this machine may have no such switch that we know.
  [[nodiscard]] static bool works()
  {
    flush_subnormals const scope;
    float volatile small         = 0x1p-127f;
    float const volatile product = small * 0x1p64f;
    return product == 0.0f;
  }

 private:
#if defined(__x86_64__)
  //! What is in memory before was computed before, and what is read after is computed after.
  static void set(unsigned control)
  {
    asm volatile("" ::: "memory");
    _mm_setcsr(control);
    asm volatile("" ::: "memory");
  }

  unsigned before_;
#endif
};

}  // namespace tersum::tests
