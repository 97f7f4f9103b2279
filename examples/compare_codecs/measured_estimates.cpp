// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What measured_estimates.hpp declares.

#include "measured_estimates.hpp"

#include <cstddef>

namespace compare_codecs {

measured_estimates::measured_estimates(std::span<std::vector<float> const> gradients, int steps)
  : exact_{average_ranks(gradients)}, steps_{static_cast<double>(steps)},
    estimate_(exact_.mean.size()), average_(exact_.mean.size()), lost_(exact_.mean.size())
{
}

void measured_estimates::add(std::span<float const> estimate)
{
  for (std::size_t i = 0; i < estimate.size(); ++i) {
    estimate_[i] = estimate[i];
    average_[i] += estimate_[i] / steps_;
    double const error = estimate_[i] - exact_.mean[i];
    lost_[i] += error * error / steps_;
  }
  if (added_++ == 0) { first_error_ = error_of(exact_.mean, estimate_); }
}

void measured_estimates::report(std::vector<layer> const& layers, measurement& out) const
{
  auto const& mean                  = exact_.mean;
  std::vector<double> const moments = second_moments(exact_, lost_);
  out.nmse                          = error_of(mean, estimate_);
  out.nmse_first_step               = first_error_;
  out.nmse_of_mean                  = error_of(mean, average_);
  out.update_error                  = update_error_of(mean, estimate_, moments);
  out.update_error_of_mean          = update_error_of(mean, average_, moments);
  out.zeros_fraction                = zeros_of(mean, estimate_);
  out.zeros_fraction_of_mean        = zeros_of(mean, average_);
  out.zeros_by_tensor               = zeros_by_tensor(mean, estimate_, average_, layers);
}

}  // namespace compare_codecs
