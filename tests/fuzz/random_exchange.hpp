// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One exchange of any kind, and the laws that docs/contracts.md states for all of them.

#pragma once

#include "exchange_ranks.hpp"
#include "gradient_kinds.hpp"
#include "number_source.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tersum::tests {

//! Some steps of training with one codec, done twice.
struct random_exchange {
  tried_codec codec;
  int world;
  std::vector<tensor> tensors;  //!< None: one vector.
  std::uint64_t coordinates;
  std::uint64_t bypass_below;
  std::uint64_t seed;
  std::vector<gradient_kind> kinds;  //!< One for each step.
  exchange_settings first, second;   //!< Must make no difference.

  [[nodiscard]] layout gradient() const
  {
    return {.coordinates = coordinates, .tensors = tensors, .bypass_below = bypass_below};
  }
  [[nodiscard]] std::string text() const;
};

//! @param codecs  Of which one is drawn.
//! @param values  The most that all ranks have together.
[[nodiscard]] random_exchange draw_exchange(number_source& source,
                                            std::vector<tried_codec> const& codecs,
                                            std::uint64_t values = UINT64_MAX);

//! @brief Counts what a fuzzer made of its inputs, and says so at its end.
struct input_counts {
  std::uint64_t exchanged = 0, refused = 0;

  ~input_counts();
};

//! What became of an exchange.
struct verdict {
  bool refused = false;  //!< There is no plan for it.
  int steps    = 0;
  int flagged  = 0;
  std::string broken;  //!< The law that it broke, or empty.
};

//! Makes the exchange twice and holds both to the laws.
[[nodiscard]] verdict try_exchange(random_exchange const& e, number_source& source);

}  // namespace tersum::tests
