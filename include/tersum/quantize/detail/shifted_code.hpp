// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The code of a value under any quantizer, as vectors pack it.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/value.hpp>

#include <cassert>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The lowest bit of a `shifted_code`; below it lies the fraction, if there is one.
template <class Quantizer>
inline constexpr int code_shift = has_grid<Quantizer> ? Quantizer::fraction_bits : 0;

//! @brief The code of a value + max_level, from bit `code_shift` on. Above eight bits of it there may be others.
template <quantizer Quantizer, class Value>
[[nodiscard]] TERSUM_HOST_INLINE words_of<Value> shifted_code(Quantizer const& quantizer,
                                                              Value const& value,
                                                              float scale,
                                                              words_of<Value> const& random)
{
  constexpr int limit = Quantizer::max_level;
  if constexpr (has_grid<Quantizer>) {
    return Quantizer::grid::field(value, scale, random);
  } else {
    words_of<Value> code;
    if constexpr (requires { quantizer.encode(value, scale, random); }) {
      code = to_words(quantizer.encode(value, scale, random) + limit);
    } else {
      code = by_lanes(
        [&](float of, std::uint32_t byte) {
          return static_cast<std::uint32_t>(quantizer.encode(of, scale, byte) + limit);
        },
        value,
        random);
    }
    assert(all(code <= words_of<Value>(2u * limit)) &&
           "tersum: encode of a quantizer returned a code beyond its max_level");
    return code;
  }
}

}  // namespace tersum::inline v0::detail
