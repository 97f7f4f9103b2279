// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is known of a codec before it is used: bytes from its plan, costs and error as measured on a gradient.

#pragma once

#include "tensors.hpp"

#include <tersum/model/exchange.hpp>

#include <compare_codecs/codecs.hpp>
#include <string_view>
#include <vector>

namespace advise {

//! @brief What one rank gives to the collectives, exactly; or a sentence.
[[nodiscard]] or_error<tersum::model::volume> volume_of(std::string_view codec,
                                                        std::vector<layer> const& tensors,
                                                        int ranks);

//! @brief Costs for each coordinate, and error where the gradients are real.
struct measured_codec {
  tersum::model::coding costs{};
  double error = 0;
};

//! @brief Runs a codec on gradients of this machine's ranks, on one thread.
[[nodiscard]] or_error<measured_codec> measure_codec(
  std::string_view codec,
  std::vector<std::vector<float>> const& gradients,
  std::vector<layer> const& tensors);

}  // namespace advise
