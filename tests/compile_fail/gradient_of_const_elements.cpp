// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A gradient that must not be written cannot become the mean: the compiler names the requirement.

#include <tersum/exchange/exchange.hpp>

#include <span>

// expected: writable_memory
static_assert(tersum::gradient_memory<std::span<float const>>);
