// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of every role, for policies of your own. Link tersum::conformance and doctest::doctest, have one file with
//! doctest's main function, and call them in test cases:
//!
//!     TEST_CASE("my quantizer is one") { tersum::tests::check_quantizer_laws<my_quantizer>(); }
//!
//! What a law says stands at its function, in the headers below. Those of block quantizers, which tersum::baselines has, are in
//! "baselines/group_quantizer_conformance.hpp".

#pragma once

#include "conformance/chunker_conformance.hpp"
#include "conformance/codebook_conformance.hpp"
#include "conformance/dither_conformance.hpp"
#include "conformance/feedback_conformance.hpp"
#include "conformance/metric_conformance.hpp"
#include "conformance/orthogonalizer_conformance.hpp"
#include "conformance/quantizer_conformance.hpp"
#include "conformance/range_conformance.hpp"
#include "conformance/reducer_conformance.hpp"
#include "conformance/rotator_conformance.hpp"
