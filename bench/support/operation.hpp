// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Parts of an exchange that are measured.

#pragma once

#include <cstdint>
#include <string_view>

namespace tersum_bench {

enum class part : std::uint8_t {
  norms,            //!< What a rank measures before the ranks agree.
  encode,           //!< Gradient to codes once the ranks have agreed.
  encode_feedback,  //!< The same of codecs with feedback, which also read and write the residual.
  local,            //!< All that a rank computes before its codes travel: norms, then encode.
  recompress,     //!< Codes of all ranks to those of their mean, of a rank's part; with four ranks.
  reduce,         //!< Payload + payload, as a hop of an all-reduce does it.
  decode,         //!< Summed codes to the mean.
  exchange,       //!< All of it for four ranks, with the sums in memory.
  pair,           //!< The same for two ranks.
  pair_replayed,  //!< The same from a captured graph.
  pair_tensors,   //!< The same for a bucket of matrices, all of them aligned.
  pair_misaligned,  //!< The same where a bias of ten coordinates comes before each matrix.
};

//! @brief A part, and the name under which it is measured.
struct operation {
  std::string_view name;
  part what;
  std::string_view only = {};  //!< One preset; empty: all.
};

//! @brief Registers a part of the exchange for the presets that were built (`TERSUM_BENCH_PRESETS`).
void add_presets(operation const& what);

}  // namespace tersum_bench
