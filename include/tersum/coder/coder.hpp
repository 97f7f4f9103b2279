// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a codec asks of its coder: how the values of a chunk become bits, and what may be done with the bits.

#pragma once

#include <tersum/concepts.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

// clang-format off
template <class T> concept has_quantizer_type = requires { typename T::quantizer_type; };  //!< using quantizer_type: which code a value gets.

//! How values become bits and back: `summed_codes`, `scaled_codes`, `cast`.
template <class T> concept coder = policy<T> && has_quantizer_type<T>;

//! A coder whose codes may be added: ranks agree on a step for each chunk before they encode it. `summed_codes`.
template <class T> concept adding_coder = coder<T> && requires { typename T::range_type::scalar; typename T::reducer_type::op; };
// clang-format on

namespace detail {

//! What a codec takes over from a coder whose codes are not added.
template <class Coder>
struct parts_of_coder {
  using range_type                         = void;
  using reducer_type                       = void;
  using lanes                              = void;
  static constexpr std::uint32_t zero_word = 0;
};

//! The same from one whose codes are.
template <adding_coder Coder>
struct parts_of_coder<Coder> {
  using range_type                         = typename Coder::range_type;
  using reducer_type                       = typename Coder::reducer_type;
  using lanes                              = typename Coder::lanes;
  static constexpr std::uint32_t zero_word = Coder::zero_word;
};

}  // namespace detail

}  // namespace tersum::inline v0
