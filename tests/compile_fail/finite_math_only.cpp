// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: tersum: a NaN has to be told from a number: compile without -ffinite-math-only
// option: -ffinite-math-only

#include <tersum/config.hpp>
