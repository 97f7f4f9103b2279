// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Options of compilers that change what floats are. Where clang lacks one, the macro is defined as g++ does.
// option: -D__FAST_MATH__=1
// option: -ffinite-math-only
// option: -D__NO_SIGNED_ZEROS__=1
// option: -D__ASSOCIATIVE_MATH__=1
// option: -D__RECIPROCAL_MATH__=1
// option: -U__FLT_EVAL_METHOD__
// option: -D__FLT_EVAL_METHOD__=2
// option: -U__GCC_IEC_559
// option: -D__GCC_IEC_559=0
// expected: tersum: ranks must agree to the last bit, and NaNs be seen: compile without -ffast-math
// expected: tersum: a NaN has to be told from a number: compile without -ffinite-math-only
// expected: tersum: ranks must agree to the last bit: compile without -fno-signed-zeros
// expected: tersum: sums are taken in the order that is written: compile without -fassociative-math
// expected: tersum: a quotient is rounded once: compile without -freciprocal-math
// expected: tersum: floats are rounded to float after each operation: compile for SSE2, without -mfpmath=387
// expected: tersum: numbers must be those of IEEE 754: compile without -fsingle-precision-constant and its like

#include <tersum/config.hpp>
