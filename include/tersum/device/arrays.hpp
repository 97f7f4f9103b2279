// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What calls on arrays take as an array: anything contiguous.

#pragma once

#include <tersum/types.hpp>

#include <ranges>
#include <type_traits>

namespace tersum::inline v0 {

//! Values to read: a vector, an array, a span of float, half or bfloat16.
template <class T>
concept readable_values =
  std::ranges::contiguous_range<T> && gradient_element<std::ranges::range_value_t<T>>;

//! Values to write: the same with elements that are not const.
template <class T>
concept writable_values = readable_values<T> &&
  !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<T>>>;

}  // namespace tersum::inline v0
