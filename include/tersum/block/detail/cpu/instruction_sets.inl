// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Compiles one source of kernels for each instruction set, in a namespace of its own, and defines TERSUM_DISPATCH, which calls
//! one of them, and TERSUM_KERNEL. A header defines TERSUM_SIMD_SOURCE, includes this file within tersum::detail, and undefines all of them when it has
//! made its calls. The source sees TERSUM_SIMD_WIDTH (floats in a vector), TERSUM_SIMD (attributes of functions within
//! kernels), TERSUM_OPERATOR (those of functions that policies call) and TERSUM_TARGET (those of kernels).

#define TERSUM_SIMD     [[maybe_unused]] TERSUM_HOST_INLINE TERSUM_INSTRUCTIONS
#define TERSUM_OPERATOR [[maybe_unused]] inline TERSUM_INSTRUCTIONS
// Kernels begin at a line of the cache, so that the speed of their loops does not depend on what was linked before them.
#define TERSUM_TARGET [[maybe_unused]] __attribute__((aligned(64))) TERSUM_INSTRUCTIONS

namespace cpu_baseline {
#define TERSUM_SIMD_WIDTH 4
#define TERSUM_INSTRUCTIONS
#include TERSUM_SIMD_SOURCE
#undef TERSUM_SIMD_WIDTH
#undef TERSUM_INSTRUCTIONS
}  // namespace cpu_baseline

#if defined(__x86_64__)
namespace cpu_avx2 {
#define TERSUM_SIMD_WIDTH   8
#define TERSUM_INSTRUCTIONS __attribute__((target("avx2,fma,f16c")))
#include TERSUM_SIMD_SOURCE
#undef TERSUM_SIMD_WIDTH
#undef TERSUM_INSTRUCTIONS
}  // namespace cpu_avx2

namespace cpu_avx512 {
#define TERSUM_SIMD_WIDTH 16
#define TERSUM_INSTRUCTIONS                                                                        \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#include TERSUM_SIMD_SOURCE
#undef TERSUM_SIMD_WIDTH
#undef TERSUM_INSTRUCTIONS
}  // namespace cpu_avx512
#endif

#undef TERSUM_SIMD
#undef TERSUM_OPERATOR
#undef TERSUM_TARGET

// Calls one kernel of the instruction set; `wide` says whether there is one for vectors of 16 floats.
#if defined(__x86_64__)
#define TERSUM_DISPATCH(instructions, wide, ...)                                                   \
  do {                                                                                             \
    if constexpr (wide) {                                                                          \
      if ((instructions) == instruction_set::avx512) { return cpu_avx512::__VA_ARGS__; }           \
    }                                                                                              \
    if ((instructions) != instruction_set::baseline) { return cpu_avx2::__VA_ARGS__; }             \
    return cpu_baseline::__VA_ARGS__;                                                              \
  } while (false)
#else
#define TERSUM_DISPATCH(instructions, wide, ...)                                                   \
  do {                                                                                             \
    static_cast<void>(instructions);                                                               \
    return cpu_baseline::__VA_ARGS__;                                                              \
  } while (false)
#endif

// Defines name(instructions, arguments...), which calls the kernel of that name.
#define TERSUM_KERNEL(name)                                                                        \
  template <class... Arguments>                                                                    \
  auto name(instruction_set instructions, Arguments... arguments)                                  \
  {                                                                                                \
    TERSUM_DISPATCH(instructions, true, name(arguments...));                                       \
  }
