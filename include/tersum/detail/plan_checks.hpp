// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans of all codecs check and compute alike.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/layout.hpp>
#include <tersum/status.hpp>

#include <cstdint>
#include <limits>

namespace tersum::inline v0::detail {

//! Whether these can be the ranks of an exchange.
[[nodiscard]] constexpr status check_world(world const& ranks) noexcept
{
  if (ranks.size < 1 || ranks.size > 65534) {
    return {error_code::invalid_argument, "world.size must be between 1 and 65534"};
  }
  if (ranks.rank == -1 && ranks.size > 1) {
    return {error_code::invalid_argument,
            "world.rank is not given: each of several ranks must say which one it is"};
  }
  if (ranks.rank < 0 || ranks.rank >= ranks.size) {
    return {error_code::invalid_argument, "world.rank must be between 0 and world.size - 1"};
  }
  return {};
}

//! The same ranks, where one rank alone is number 0 without saying so.
[[nodiscard]] constexpr world with_only_rank(world const& ranks) noexcept
{
  return ranks.size == 1 && ranks.rank == -1 ? world{.size = 1, .rank = 0} : ranks;
}

//! @brief Whether the tensors of a gradient, or of the bucket that it is a part of, cover it without gaps, in ascending order.
//! Sizes that wrap cover nothing.
[[nodiscard]] constexpr bool is_covered(layout const& gradient) noexcept
{
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end            = 0;
  for (tensor const& t : gradient.tensors) {
    if (t.columns != 0 && t.rows > (most - end) / t.columns) { return false; }
    if (t.offset != end) { return false; }
    end = t.offset + t.size();
  }
  return gradient.tensors.empty() || end == gradient.bucket();
}

//! @brief Whether tensors cover a gradient of a length whose bytes can be counted: what bypasses, or lies in matrices, has no
//! chunks that would be too many.
[[nodiscard]] constexpr status check_layout(layout const& gradient) noexcept
{
  if (!is_covered(gradient)) {
    return {error_code::invalid_argument,
            "layout.tensors must cover layout.coordinates without gaps, in ascending order"};
  }
  if (gradient.first > gradient.bucket() ||
      gradient.coordinates > gradient.bucket() - gradient.first) {
    return {error_code::invalid_argument, "layout.first and coordinates lie beyond layout.whole"};
  }
  if (gradient.coordinates > std::uint64_t{1} << 48) {
    return {error_code::invalid_argument, "layout.coordinates is above 2^48"};
  }
  return {};
}

//! Whether a chunker's bits per coordinate can be a budget: a number from 0 to 64, not NaN.
[[nodiscard]] constexpr status check_budget(float bits) noexcept
{
  if (!(bits >= 0 && bits <= 64)) {
    return {error_code::invalid_argument, "the chunker's bits must be between 0 and 64"};
  }
  return {};
}

}  // namespace tersum::inline v0::detail
