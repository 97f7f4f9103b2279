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

}  // namespace tersum::inline v0
