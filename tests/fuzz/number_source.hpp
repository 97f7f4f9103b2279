// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Numbers for choices: from the bytes of a fuzzer as long as there are any, then pseudo-random.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::tests {

class number_source {
 public:
  explicit number_source(std::uint64_t seed) : state_(seed) {}
  explicit number_source(std::span<std::uint8_t const> bytes) : bytes_(bytes), state_(bytes.size())
  {
  }

  //! A number below `end`.
  [[nodiscard]] std::uint64_t below(std::uint64_t end)
  {
    if (bytes_.empty()) { return random() % end; }
    std::uint64_t value = 0;
    for (std::uint64_t most = 1; most < end && !bytes_.empty(); most <<= 8) {
      value  = value << 8 | bytes_[0];
      bytes_ = bytes_.subspan(1);
      if (most > UINT64_MAX >> 8) { break; }
    }
    return value % end;
  }
  [[nodiscard]] int from_to(int first, int last)
  {
    return first + static_cast<int>(below(static_cast<std::uint64_t>(last - first + 1)));
  }
  [[nodiscard]] bool one_in(std::uint64_t n) { return below(n) == n - 1; }

  //! Never from the fuzzer's bytes. SplitMix64, Steele et al. (OOPSLA'14).
  [[nodiscard]] std::uint64_t random()
  {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z               = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z               = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  //! Uniform in (0, 1).
  [[nodiscard]] double uniform() { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; }
  //! Box-Muller.
  [[nodiscard]] double normal()
  {
    double const radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }
  //! @brief Nearly normal: the sum of four uniform numbers, between -3.5 and 3.5.
  [[nodiscard]] float quick_normal()
  {
    std::uint64_t const z = random();
    auto const sum =
      static_cast<std::int32_t>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    return static_cast<float>(sum - 131070) * 2.6429e-5f;
  }
  //! What is left of the fuzzer's bytes.
  [[nodiscard]] std::span<std::uint8_t const> rest() const { return bytes_; }

 private:
  std::span<std::uint8_t const> bytes_ = {};
  std::uint64_t state_;
};

}  // namespace tersum::tests
