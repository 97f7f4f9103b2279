// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: tersum: floats are rounded to float after each operation: compile for SSE2, without -mfpmath=387

#undef __FLT_EVAL_METHOD__
#define __FLT_EVAL_METHOD__ 2  // as compilers do for -mfpmath=387

#include <tersum/config.hpp>
