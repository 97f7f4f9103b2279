// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The standard headers that element and block scope use. NVRTC has none: there `std` in this library's namespace is libcu++'s.

#pragma once

#if defined(__CUDACC_RTC__)
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/cmath>
#include <cuda/std/concepts>
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <cuda/std/numeric>
#include <cuda/std/span>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

namespace tersum::inline v0::std {

using namespace ::cuda::std;

//! Sentences and names, which no kernel reads.
class string_view {
 public:
  constexpr string_view(char const* text) : begin_{text}, end_{text}
  {
    while (*end_ != 0) { ++end_; }
  }
  [[nodiscard]] constexpr char const* begin() const { return begin_; }
  [[nodiscard]] constexpr char const* end() const { return end_; }
  [[nodiscard]] constexpr bool empty() const { return begin_ == end_; }
  friend constexpr bool operator==(string_view a, string_view b)
  {
    for (; !a.empty() && !b.empty() && *a.begin_ == *b.begin_; ++a.begin_, ++b.begin_) {}
    return a.empty() && b.empty();
  }

 private:
  char const* begin_;
  char const* end_;
};

}  // namespace tersum::inline v0::std
#else
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#endif
