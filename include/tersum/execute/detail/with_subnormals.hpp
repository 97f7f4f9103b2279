// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Arithmetic that does not flush subnormal floats to zero, whatever the caller has switched on.

#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief While an object of this class lives, its thread computes with subnormal floats as IEEE demands. Frameworks, and
//! libraries linked with -ffast-math, may have set the thread to flush them, but the ranks must agree all the same.
class with_subnormals {
 public:
  with_subnormals() noexcept : before_{get()}
  {
    if ((before_ & flush) != 0) { set(before_ & ~flush); }
  }
  ~with_subnormals()
  {
    if ((before_ & flush) != 0) { set(before_); }
  }
  with_subnormals(with_subnormals const&)            = delete;
  with_subnormals& operator=(with_subnormals const&) = delete;

 private:
#if defined(__x86_64__)
  using control                  = unsigned;
  static constexpr control flush = 0x8040;  // results to zero, operands to zero

  static control get() noexcept { return _mm_getcsr(); }
  // The barriers keep compilers from moving arithmetic across the change.
  static void set(control to) noexcept
  {
    asm volatile("" ::: "memory");
    _mm_setcsr(to);
    asm volatile("" ::: "memory");
  }
#elif defined(__aarch64__)
  using control                  = std::uint64_t;
  static constexpr control flush = std::uint64_t{1} << 24;

  static control get() noexcept
  {
    control now;
    asm volatile("mrs %0, fpcr" : "=r"(now));
    return now;
  }
  static void set(control to) noexcept { asm volatile("msr fpcr, %0" ::"r"(to) : "memory"); }
#else
  using control                  = unsigned;
  static constexpr control flush = 0;

  static control get() noexcept { return 0; }
  static void set(control) noexcept {}
#endif

  control before_;
};

}  // namespace tersum::inline v0::detail
