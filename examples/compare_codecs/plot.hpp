// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Draws error against bits.

#pragma once

#include "report.hpp"

#include <ostream>
#include <span>

namespace compare_codecs {

//! @brief Writes an SVG with one panel for each set.
//!
//! Both axes are logarithmic and the same in all panels. Two lines through fp16, the baseline, show
//! what a codec saves and what it pays. The error axis ends a decade below fp16; what is smaller
//! (fp32, say) stands on its edge with the number beside it. A result without bits or without a
//! finite error is not drawn.
//!
//! @param results  Those of one set stand together.
void write_svg(std::ostream& out, std::span<result const> results);

}  // namespace compare_codecs
