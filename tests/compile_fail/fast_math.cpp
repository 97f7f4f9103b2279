// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: tersum: ranks must agree to the last bit, and NaNs be seen: compile without -ffast-math

#define __FAST_MATH__ 1  // as the option does

#include <tersum/tersum.hpp>
