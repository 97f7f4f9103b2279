// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two ways with the same codes.
// expected: tersum: ways<Up, Down> is for codes of unlike widths: give one quantizer for both ways

#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/quantize/ways.hpp>

constexpr tersum::ways<tersum::lloyd_max<2>, tersum::lloyd_max<2>> both{};
