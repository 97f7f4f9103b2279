// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What kernels ask of quantizers of groups with a scale each.

#pragma once

#include <tersum/concepts.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

// clang-format off
template <class T> concept has_scale         = requires(float v, std::uint32_t code) {
  typename std::integral_constant<int, T::scale::bits>;           //!< Bits of a scale on the wire: 8 or 16.
  { T::scale::encode(v) } -> std::same_as<std::uint32_t>;     //!< encode(largest magnitude of the block over that of the chunk), from 0 to 1.
  { T::scale::decode(code) } -> std::same_as<float>; };       //!< The scale; where it is less than what was encoded, larger magnitudes get the last level.
template <class T> concept has_uniform       = requires { typename std::bool_constant<T::uniform>; };    //!< Whether levels have equal distances.
template <class T> concept has_levels        = requires {
  { T::level.data() } -> std::convertible_to<float const*>;   //!< The `magnitudes` levels of one sign, as parts of the block's scale: from 0, ascending, those that are used up to 1.
  { T::mark.data() } -> std::convertible_to<std::uint32_t const*>; }; //!< The same in units of 2^-20, then one more that no value reaches.
template <class T> concept has_round         = requires(std::uint32_t v, std::uint32_t const* marks) {
  { T::round(v, v, marks) } -> std::same_as<std::uint32_t>; }; //!< round(magnitude in 2^-20, 512ths of a distance beyond which it goes up, `mark`): the level's number.

//! Codes of groups of coordinates with a scale each: `group_absmax`, whose header has the kernels of all quantizers of this kind.
template <class T> concept group_quantizer = block_quantizer<T> && has_magnitudes<T> && has_scale<T>
                                            && has_uniform<T> && has_levels<T> && has_round<T>;
// clang-format on

}  // namespace tersum::inline v0
