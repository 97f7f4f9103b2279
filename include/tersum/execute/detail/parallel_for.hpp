// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A loop over independent items on the threads of OpenMP, or on the calling thread alone, in arithmetic that flushes no subnormal
//! floats to zero; and memory as such items see it.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tersum::inline v0::detail {

//! @brief Memory as the CPU executor's items see it.
struct host_memory {
  template <class T>
  [[nodiscard]] T load(T const* from) const
  {
    return *from;
  }
  template <class T>
  void store(T* to, T value) const
  {
    *to = value;
  }
  [[nodiscard]] static float value(auto of) { return to_float(of); }
  template <class T>
  [[nodiscard]] static T element(float of)
  {
    return from_float<T>(of);
  }
  [[nodiscard]] static float multiply(float a, float b) { return a * b; }
};

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

#if defined(_OPENMP)
inline namespace openmp {
#else
inline namespace serial {
#endif

//! @brief Calls body(i) for first <= i < last. Not inlined, so that one thread and several share it.
template <class Body>
[[gnu::noinline]] void for_share(std::uint64_t first, std::uint64_t last, Body const& body)
{
  for (std::uint64_t i = first; i < last; ++i) { body(i); }
}

//! @brief Calls body(i) for 0 <= i < count, in contiguous shares of equal size. The caller has `with_subnormals`. One thread begins no
//! parallel region, in which some runtimes of OpenMP ask for memory each time.
template <class Body>
void parallel_for([[maybe_unused]] int threads, std::uint64_t count, Body const& body)
{
#if defined(_OPENMP)
  int const used = static_cast<int>(minimum(static_cast<std::uint64_t>(threads), count));
  if (used > 1) {
    auto const shares        = static_cast<std::uint64_t>(used);
    std::uint64_t const size = (count + shares - 1) / shares;
#pragma omp parallel num_threads(used)
    {
      with_subnormals const scope;
#pragma omp for schedule(static) nowait
      for (int share = 0; share < used; ++share) {
        std::uint64_t const first = static_cast<std::uint64_t>(share) * size;
        for_share(minimum(first, count), minimum(first + size, count), body);
      }
    }
    return;
  }
#endif
  for_share(std::uint64_t{0}, count, body);
}

//! @brief Cuts 0 .. count-1 into one contiguous share for each thread, and calls body(first, last) for it there. All shares
//! but the last are multiples of `unit`. A second thread takes part from `least` items on.
template <class Body>
void each_share(
  int threads, std::uint64_t count, std::uint64_t least, std::uint64_t unit, Body const& body)
{
  std::uint64_t const most   = maximum<std::uint64_t>((count + least - 1) / least, 1);
  std::uint64_t const shares = minimum(static_cast<std::uint64_t>(threads), most);
  std::uint64_t const size   = round_up((count + shares - 1) / shares, unit);
  parallel_for(threads, size == 0 ? 0 : (count + size - 1) / size, [&](std::uint64_t share) {
    body(share * size, minimum(count, (share + 1) * size));
  });
}

}  // namespace serial or openmp

}  // namespace tersum::inline v0::detail
