// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What errors.hpp declares.

#include "errors.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace compare_codecs {

namespace {

double square(double value) { return value * value; }

double relative(double lost, double all)
{
  return all == 0 ? (lost == 0 ? 0 : std::numeric_limits<double>::infinity()) : lost / all;
}

}  // namespace

exact_mean average_ranks(std::span<std::vector<float> const> gradients)
{
  auto const n = static_cast<double>(gradients.size());
  exact_mean exact;
  exact.mean.resize(gradients[0].size());
  for (auto const& gradient : gradients) {
    for (std::size_t i = 0; i < gradient.size(); ++i) { exact.mean[i] += gradient[i]; }
  }
  for (double& mean : exact.mean) { mean /= n; }
  if (gradients.size() == 1) { return exact; }
  exact.variance.resize(exact.mean.size());
  for (auto const& gradient : gradients) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      exact.variance[i] += square(gradient[i] - exact.mean[i]);
    }
  }
  for (double& variance : exact.variance) { variance /= (n - 1) * n; }
  return exact;
}

double error_of(std::span<double const> mean, std::span<double const> estimate)
{
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    lost += square(mean[i] - estimate[i]);
    all += square(mean[i]);
  }
  return relative(lost, all);
}

std::vector<double> second_moments(exact_mean const& exact, std::span<double const> lost)
{
  std::vector<double> moments(exact.variance.size());
  for (std::size_t i = 0; i < moments.size(); ++i) {
    double const of_ranks = std::max(square(exact.mean[i]), exact.variance[i]);
    moments[i]            = of_ranks == 0 ? 0 : of_ranks + lost[i];
  }
  return moments;
}

double update_error_of(std::span<double const> mean,
                       std::span<double const> estimate,
                       std::span<double const> moments)
{
  if (moments.empty()) { return std::numeric_limits<double>::quiet_NaN(); }
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    if (moments[i] == 0) { continue; }
    lost += square(estimate[i] - mean[i]) / moments[i];
    all += square(mean[i]) / moments[i];
  }
  return relative(lost, all);
}

double zeros_of(std::span<double const> mean, std::span<double const> estimate)
{
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    zeros += estimate[i] == 0 && mean[i] != 0 ? 1u : 0u;
  }
  return static_cast<double>(zeros) / static_cast<double>(mean.size());
}

std::vector<tensor_zeros> zeros_by_tensor(std::span<double const> mean,
                                          std::span<double const> estimate,
                                          std::span<double const> average,
                                          std::span<layer const> layers)
{
  std::vector<tensor_zeros> shares;
  for (auto const& one : layers) {
    std::size_t const size = one.rows * one.columns;
    auto const exact       = mean.subspan(one.offset, size);
    shares.push_back({one.name,
                      zeros_of(exact, estimate.subspan(one.offset, size)),
                      zeros_of(exact, average.subspan(one.offset, size))});
  }
  return shares;
}

}  // namespace compare_codecs
