// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The saturating sum of a payload whose parts have lanes of different widths.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/reduce/saturating_sum.hpp>

namespace tersum::inline v0 {

//! @brief Adds the words of a payload of `allocated_chunks`. The position of a word decides which lanes it has.
//!
//! After the agreement every rank knows where the stretch of each width begins; `parts` points to that, in the
//! executor's memory. To reduce some of the array, take `from(index)` of its first element. A transport whose reductions
//! see no positions reduces one stretch after the other: see `for_each_part`.
//! @tparam Widths  Lane bits of level 1, 2 ...
template <int... Widths>
struct saturating_segments {
  using element                     = std::uint32_t;
  static constexpr bool native      = false;
  static constexpr bool associative = false;
  static constexpr bool exact       = false;
  static constexpr int levels       = sizeof...(Widths);

  detail::selection_header const* parts = nullptr;  //!< Where each level begins.
  std::uint64_t first                   = 0;        //!< The position of element 0 in the payload.

  //! The same for the elements from `index` on.
  [[nodiscard]] constexpr saturating_segments from(std::size_t index) const noexcept
  {
    return {parts, first + index};
  }

  //! The sum of the elements number `index`.
  [[nodiscard]] TERSUM_HOST_DEVICE std::uint32_t operator()(std::uint32_t a,
                                                            std::uint32_t b,
                                                            std::size_t index) const noexcept
  {
    std::uint32_t sum = 0;
    int level         = 0;
    // The widest level comes first: a word belongs to the lowest level that has begun, and the rest holds zeros.
    bool found = false;
    ((++level,
      (!found && first + index >= parts->base[level])
        ? (sum = saturating_add<Widths>{}(a, b), found = true)
        : false),
     ...);
    return sum;
  }

  //! @brief Calls visit(op, begin, end) for each part of the elements 0 .. count-1, with the `saturating_add` of its
  //! lanes. On the host, for parts in host memory.
  template <class Visitor>
  void for_each_part(std::size_t count, Visitor&& visit) const
  {
    int level = 0;
    ((++level, visit_part<Widths>(level, count, visit)), ...);
  }

 private:
  template <int Bits, class Visitor>
  void visit_part(int level, std::size_t count, Visitor&& visit) const
  {
    // Beyond the last stretch are zeros, which lanes of any width add.
    std::uint64_t const last  = first + count;
    std::uint64_t const end   = level == 1 ? last : detail::minimum(parts->base[level - 1], last);
    std::uint64_t const begin = detail::maximum(parts->base[level], first);
    if (begin < end) {
      visit(saturating_add<Bits>{},
            static_cast<std::size_t>(begin - first),
            static_cast<std::size_t>(end - first));
    }
  }
};

static_assert(reduce_op<saturating_segments<2, 4, 8>>, "tersum: must model tersum::reduce_op");

}  // namespace tersum::inline v0
