// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The macro is defined as compilers do for -mfpmath=387.
// expected: tersum: floats are rounded to float after each operation: compile for SSE2, without -mfpmath=387
// option: -U__FLT_EVAL_METHOD__
// option: -D__FLT_EVAL_METHOD__=2

#include <tersum/config.hpp>
