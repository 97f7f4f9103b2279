// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! SDP4Bit's recipe for gradients, to compare with (Jia et al., NeurIPS 2024, arXiv:2410.15526): 8 bits within a host, 4 bits
//! between hosts, in groups of 128 with a float for the largest magnitude, each group in four Hadamard transforms of 32.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace sdp4bit {

inline constexpr std::size_t group     = 128;
inline constexpr std::size_t transform = 32;
inline constexpr double recipe_bits    = 4 + 32.0 / group;

//! The normalized Hadamard transform of 32 values, which is its own inverse.
inline void hadamard(float* x)
{
  for (std::size_t half = 1; half < transform; half *= 2) {
    for (std::size_t i = 0; i < transform; ++i) {
      if ((i & half) != 0) { continue; }
      float const a = x[i], b = x[i + half];
      x[i]        = a + b;
      x[i + half] = a - b;
    }
  }
  for (std::size_t i = 0; i < transform; ++i) { x[i] /= std::sqrt(static_cast<float>(transform)); }
}

//! What codes of so many bits say of values: rounded to nearest in each group.
inline void round_to_codes(std::vector<float>& values, int bits)
{
  float const most_code = static_cast<float>((1 << (bits - 1)) - 1);
  std::vector<float> x(group);
  for (std::size_t first = 0; first < values.size(); first += group) {
    std::size_t const count = std::min(group, values.size() - first);
    auto const begin        = values.begin() + static_cast<std::ptrdiff_t>(first);
    std::fill(std::copy_n(begin, count, x.begin()), x.end(), 0.0f);
    for (std::size_t i = 0; i < group; i += transform) { hadamard(x.data() + i); }
    float most = 0;
    for (float const v : x) { most = std::max(most, std::abs(v)); }
    float const step = most / most_code;
    for (float& v : x) { v = step > 0 ? std::nearbyint(v / step) * step : 0; }
    for (std::size_t i = 0; i < group; i += transform) { hadamard(x.data() + i); }
    std::copy_n(x.begin(), count, begin);
  }
}

//! @brief The mean of the ranks as the recipe makes it.
//! @param both_ways  Whether the mean goes back in 4 bits, too; otherwise its owners have it in float.
inline std::vector<float> recipe_mean(std::vector<std::vector<float>> const& in,
                                      int ranks_per_host,
                                      bool both_ways)
{
  auto const per_host = static_cast<std::size_t>(ranks_per_host);
  std::vector<float> mean(in[0].size());
  for (std::size_t host = 0; host < in.size() / per_host; ++host) {
    std::vector<float> of_host(mean.size());
    for (std::size_t number = 0; number < per_host; ++number) {
      auto sent = in[host * per_host + number];
      round_to_codes(sent, 8);
      for (std::size_t i = 0; i < sent.size(); ++i) {
        of_host[i] += sent[i] / static_cast<float>(per_host);
      }
    }
    round_to_codes(of_host, 4);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] += of_host[i] * static_cast<float>(per_host) / static_cast<float>(in.size());
    }
  }
  if (both_ways) { round_to_codes(mean, 4); }
  return mean;
}

}  // namespace sdp4bit
