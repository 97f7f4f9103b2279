// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Times to come, of durations that may be the longest there are.

#pragma once

#include <chrono>

namespace tersum::inline v0::detail {

//! The time that is so much later than another one, or the last one that the clock can tell.
[[nodiscard]] inline std::chrono::steady_clock::time_point later(
  std::chrono::steady_clock::time_point begin, std::chrono::milliseconds wait) noexcept
{
  using clock = std::chrono::steady_clock;
  // In milliseconds: in the clock's unit the longest wait would wrap.
  auto const most =
    std::chrono::duration_cast<std::chrono::milliseconds>(clock::time_point::max() - begin);
  return wait < most ? begin + wait : clock::time_point::max();
}

}  // namespace tersum::inline v0::detail
