// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a codec made of the mean in all steps: its errors in a measurement.

#pragma once

#include "codecs.hpp"
#include "errors.hpp"

#include <span>
#include <vector>

namespace compare_codecs {

//! @brief Collects the estimates of the same mean, one of each step.
class measured_estimates {
 public:
  //! @param gradients  One for each rank.
  //! @param steps      So many estimates will be added.
  measured_estimates(std::span<std::vector<float> const> gradients, int steps);

  //! @brief Takes the estimate of the next step.
  void add(std::span<float const> estimate);

  //! @brief Writes all errors and shares of zeros, when the estimates of all steps are there.
  void report(std::vector<layer> const& layers, measurement& out) const;

 private:
  exact_mean exact_;
  double steps_;
  int added_ = 0;
  std::vector<double> estimate_, average_,
    lost_;  // the last one, the mean of all, and the mean square of their errors
  double first_error_ = 0;
};

}  // namespace compare_codecs
