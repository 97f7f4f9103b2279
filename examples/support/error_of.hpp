// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The error that the examples print.

#pragma once

#include <tersum/types.hpp>

#include <cstddef>
#include <vector>

namespace support {

//! |exact - estimate|^2 / |exact|^2
template <class T>
double error_of(std::vector<float> const& estimate, std::vector<T> const& exact)
{
  double error = 0, square = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    auto const value  = static_cast<double>(exact[i]);
    double const lost = value - static_cast<double>(estimate[i]);
    error += lost * lost;
    square += value * value;
  }
  return error / square;
}

//! The mean of arrays of float, half or bfloat16, all of one length.
template <class T>
std::vector<double> mean_of(std::vector<std::vector<T>> const& arrays)
{
  std::vector<double> mean(arrays[0].size());
  for (auto const& array : arrays) {
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] +=
        static_cast<double>(tersum::to_float(array[i])) / static_cast<double>(arrays.size());
    }
  }
  return mean;
}

}  // namespace support
