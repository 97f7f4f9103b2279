// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A reduction that does not say whether transports have it built in: the compiler names the
//! requirement.
// expected: has_native

#include <tersum/wire.hpp>

#include <cstdint>

struct plus {
  using element                     = std::uint32_t;
  static constexpr bool associative = true;
  static constexpr bool exact       = true;
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a + b; }
};

tersum::wire<plus> const wire;
