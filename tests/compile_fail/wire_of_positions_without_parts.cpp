// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A reduction that takes positions and does not say in which parts it needs none: the compiler names the requirement.
// expected: for_each_part

#include <tersum/wire.hpp>

#include <cstddef>
#include <cstdint>

struct shifting {
  using element                     = std::uint32_t;
  static constexpr bool native      = false;
  static constexpr bool associative = true;
  static constexpr bool exact       = true;
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::size_t) const { return a + b; }
  shifting from(std::size_t) const { return *this; }
};

// The concept itself, since compilers name no atom of an alternative.
template <tersum::has_combine_at Op>
struct positional {
};

positional<shifting> const op;
