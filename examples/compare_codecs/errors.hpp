// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How far an estimate is from the exact mean: as a gradient, as a step of Adam, and in zeros. All in double precision.

#pragma once

#include "gradient_sets.hpp"

#include <span>
#include <string>
#include <vector>

namespace compare_codecs {

//! @brief The exact mean of all ranks, and how much the next such mean may differ from it.
struct exact_mean {
  std::vector<double> mean{};

  //! The variance of the mean, s^2 / n, where s^2 is the unbiased variance of n ranks. Empty for one rank, which does not tell.
  std::vector<double> variance{};
};

//! @brief Averages at least one gradient; all are of equal length.
[[nodiscard]] exact_mean average_ranks(std::span<std::vector<float> const> gradients);

//! @brief |mean - estimate|^2 / |mean|^2: infinite where only the mean is zero, zero where both are.
[[nodiscard]] double error_of(std::span<double const> mean, std::span<double const> estimate);

//! @brief Estimates of the second moments by whose roots Adam divides.
//!
//! Adam's second moment is a running mean of the squares of the means that it is given. The exact mean of n ranks has the
//! expected square mu^2 + sigma^2 / n, with mu the true mean of a coordinate and sigma^2 the variance among ranks. Of one sample of
//! the ranks mean^2 is an unbiased estimate of that: it contains sigma^2 / n already, and mean^2 + s^2 / n would count the noise
//! twice. But mean^2 alone makes every exact update 1 or -1, and is next to zero where noise happens to cancel the mean. Therefore
//! the parts are estimated one by one: mu^2 by mean^2 - s^2 / n, or by 0 where that is negative, and sigma^2 / n by s^2 / n.
//! Together they are the larger of mean^2 and s^2 / n. That is as large as it should be where the mean is larger than its noise,
//! and less than twice as large elsewhere.
//!
//! A codec adds the square of its error, which is not correlated with the mean if the codec has no bias. Without it a few
//! coordinates decide on all: those that are usually far smaller than what a codec adds to all coordinates of their chunk. Adam's
//! second moment, which has seen that too, is not small there.
//!
//! @param lost  For each coordinate the square of the codec's error, averaged over steps.
//! @return 0 where all ranks have zeros, whatever the codec makes of them: such a sample does not tell how large the coordinate
//!         usually is. Empty if `exact.variance` is.
[[nodiscard]] std::vector<double> second_moments(exact_mean const& exact,
                                                 std::span<double const> lost);

//! @brief |estimate's update - exact update|^2 / |exact update|^2, where an update is a gradient divided by the roots of
//!        `moments`, coordinate by coordinate. Those whose moment is 0 are left out.
//! @return NaN if there are no moments; infinite or zero as `error_of` is.
[[nodiscard]] double update_error_of(std::span<double const> mean,
                                     std::span<double const> estimate,
                                     std::span<double const> moments);

//! @brief The share of all coordinates that the estimate has as zeros although their mean is not zero.
[[nodiscard]] double zeros_of(std::span<double const> mean, std::span<double const> estimate);

//! @brief Such shares of one tensor.
struct tensor_zeros {
  std::string tensor{};
  double fraction         = 0;  //!< Of one estimate.
  double fraction_of_mean = 0;  //!< Of the average of several.
};

//! @brief `zeros_of` for each tensor, in the order of `layers`.
[[nodiscard]] std::vector<tensor_zeros> zeros_by_tensor(std::span<double const> mean,
                                                        std::span<double const> estimate,
                                                        std::span<double const> average,
                                                        std::span<layer const> layers);

}  // namespace compare_codecs
