// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The network as it is: measured over MPI or Gloo.

#pragma once

#include "options.hpp"

namespace advise {

//! @brief What a probe found, the same on every rank but for `rank`.
struct probed {
  tersum::model::network net{};
  int ranks = 1;
  int rank  = 0;
};

//! @brief Measures latency and bandwidth together with all other ranks, or says why it cannot.
[[nodiscard]] or_error<probed> probe(options const& chosen);

}  // namespace advise
