// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sizes of the benchmarks, and the names in their results.

#pragma once

#include <tersum/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace tersum_bench {

inline constexpr std::uint64_t bucket = 6553600;                 //!< 25 MB of floats.
inline constexpr std::uint64_t large  = std::uint64_t{1} << 24;  //!< 64 MB of floats.

//! @brief Whether TERSUM_SMALL is set: benchmarks shall show that they run, in seconds, and measure nothing.
[[nodiscard]] inline bool small() { return std::getenv("TERSUM_SMALL") != nullptr; }

//! @brief The coordinates of gradients, multiples of 32768.
[[nodiscard]] inline std::span<std::uint64_t const> sizes()
{
  static constexpr std::uint64_t all[] = {
    bucket, large, std::uint64_t{1} << 26, std::uint64_t{1} << 28};
  static constexpr std::uint64_t one[] = {32768};
  return small() ? std::span<std::uint64_t const>{one} : all;
}

//! @brief Those of whole exchanges, from what fits into one block to what no cache holds.
[[nodiscard]] inline std::span<std::uint64_t const> exchange_sizes()
{
  static constexpr auto all = [] {
    std::array<std::uint64_t, 9> powers{};
    for (std::size_t i = 0; i < powers.size(); ++i) {
      powers[i] = std::uint64_t{1} << (12 + 2 * i);
    }
    return powers;
  }();
  static constexpr std::uint64_t few[] = {4096, 32768};
  return small() ? std::span<std::uint64_t const>{few} : all;
}

//! @brief Those of buckets of tensors.
[[nodiscard]] inline std::span<std::uint64_t const> bucket_sizes()
{
  static constexpr std::uint64_t all[] = {
    std::uint64_t{1} << 20, std::uint64_t{1} << 24, std::uint64_t{1} << 28};
  return small() ? sizes() : all;
}

template <class Element>
inline constexpr std::string_view element_name = "float";
template <>
inline constexpr std::string_view element_name<tersum::half> = "half";
template <>
inline constexpr std::string_view element_name<tersum::bfloat16> = "bfloat16";

//! @brief `<operation>/<preset>/<type>/<executor>/n:<n>/threads:<t>`
[[nodiscard]] inline std::string result_name(std::string_view operation,
                                             std::string_view preset,
                                             std::string_view element,
                                             std::string_view executor,
                                             std::uint64_t n,
                                             int threads)
{
  std::string name{operation};
  name.append("/").append(preset).append("/").append(element).append("/").append(executor);
  name.append("/n:").append(std::to_string(n));
  return name.append("/threads:").append(std::to_string(threads));
}

}  // namespace tersum_bench
