// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a decoded sum tells of a chunk.

#pragma once

#include <tersum/config.hpp>

namespace tersum::inline v0 {

//! @brief What an exchange has shown of the sum of one chunk, the same on every rank: from it the next range follows.
struct sum_report {
  float range;     //!< The range that the exchange had, in units of the summed gradient.
  float limit;     //!< Where the lanes end, in the same units.
  float square;    //!< The mean square of the summed codes, over that of the limit.
  float inside;    //!< The part of it that lanes have which are not at a limit.
  float at_limit;  //!< The share of the lanes that are at a limit.
};

}  // namespace tersum::inline v0
