// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a CPU's vector units can do.

#pragma once

#include <cstdint>

namespace tersum::inline v0 {

//! @brief Instruction sets that the CPU kernels know. All give the same bits.
enum class instruction_set : std::uint8_t {
  baseline,  //!< Vectors of four floats: SSE2, NEON, or whatever the compiler makes of them.
  avx2,      //!< AVX2 with FMA and F16C.
  avx512,    //!< AVX-512 F, BW, DQ and VL.
};

//! @brief The widest instruction set of this machine.
[[nodiscard]] inline instruction_set best_instruction_set() noexcept
{
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return instruction_set::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return instruction_set::avx2;
  }
#endif
  return instruction_set::baseline;
}

}  // namespace tersum::inline v0
