// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How often a thread has asked for memory: exchanges on the CPU never do. The GNU C library lets a program have functions of its
//! own for that, through which `operator new` and the runtime of OpenMP go too. Elsewhere, and under the address sanitizer,
//! which has its own, nothing is counted.

#pragma once

#include "sanitized.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace tersum::tests {

//! Of the thread.
inline constinit thread_local std::uint64_t allocations = 0;

//! @brief What the thread asks for while one of these lives does not count.
class uncounted_allocations {
 public:
  uncounted_allocations() : before_(allocations) {}
  uncounted_allocations(uncounted_allocations const&)            = delete;
  uncounted_allocations& operator=(uncounted_allocations const&) = delete;
  ~uncounted_allocations() { allocations = before_; }

 private:
  std::uint64_t before_;
};

//! @brief How often this thread asks for memory while it calls. In a thread's first parallel region the runtime of OpenMP
//! does so, once; that one lies before the call.
template <class Call>
[[nodiscard]] std::uint64_t allocations_of(Call const& call)
{
#if defined(_OPENMP)
#pragma omp parallel num_threads(1)
  {
    asm volatile("");  // so that it is not left out
  }
#endif
  std::uint64_t const before = allocations;
  call();
  return allocations - before;
}

#if defined(__GLIBC__) && !defined(__CUDACC__)
inline constexpr bool allocations_are_counted = !sanitized;
#else
inline constexpr bool allocations_are_counted = false;
#endif

}  // namespace tersum::tests

#if defined(__GLIBC__) && !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__)
#if !defined(__has_feature)
#define TERSUM_COUNT_ALLOCATIONS 1
#elif !__has_feature(address_sanitizer)
#define TERSUM_COUNT_ALLOCATIONS 1
#endif
#endif

#if defined(TERSUM_COUNT_ALLOCATIONS)
// Weak, because several files of a program may include this one.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

[[gnu::weak]] void* malloc(std::size_t bytes) noexcept
{
  ++tersum::tests::allocations;
  return __libc_malloc(bytes);
}
[[gnu::weak]] void* calloc(std::size_t count, std::size_t bytes) noexcept
{
  ++tersum::tests::allocations;
  return __libc_calloc(count, bytes);
}
[[gnu::weak]] void* realloc(void* memory, std::size_t bytes) noexcept
{
  ++tersum::tests::allocations;
  return __libc_realloc(memory, bytes);
}
[[gnu::weak]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept
{
  ++tersum::tests::allocations;
  return __libc_memalign(alignment, bytes);
}
}
#undef TERSUM_COUNT_ALLOCATIONS
#endif
