// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the quantizer role, for a quantizer of one's own.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "quantizer.hpp"

#include <tersum_conformance.hpp>

TEST_CASE("my quantizer is one") { tersum::tests::check_quantizer_laws<ternary_quantizer>(); }
