// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A table whose rounding would be biased.
// expected: tersum: lookup_table<Values...> needs a power of two of values

#include <tersum/quantize/lookup_quantizer.hpp>

auto const count = tersum::lookup_table<0, 1, 2, 4>::count;
