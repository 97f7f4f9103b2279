// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What exchanges and calls on arrays take as arrays of values: ranges, and memory of other libraries that becomes one.

#pragma once

#include <tersum/types.hpp>

#include <ranges>
#include <span>
#include <type_traits>

namespace tersum::inline v0 {

//! A range whose elements can be written, such as std::span<float>, but not std::span<float const>.
template <class T>
concept writable_memory = std::ranges::contiguous_range<T> &&
  !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<T>>>;

//! @brief How memory that is no range of these elements becomes one: a static member of(memory) that returns a span.
//! `interop/thrust.cuh` specializes it for Thrust's vectors and CUDA's elements; do so for a type of yours.
template <class T>
struct gradient_view;

//! Memory of which `gradient_view` makes a span.
template <class T>
concept viewed_memory = requires(T& memory)
{
  {
    gradient_view<std::remove_cvref_t<T>>::of(memory)
    } -> writable_memory;
};

//! Writable memory of float, half or bfloat16 of the executor: a vector, array, span, or what `gradient_view` makes one of.
template <class T>
concept gradient_memory = viewed_memory<T> ||
  (writable_memory<T>&& gradient_element<std::ranges::range_value_t<T>>);

//! Memory of float, half or bfloat16 that is only read: what `gradient_memory` is, or a range of const elements.
template <class T>
concept gradient_values = gradient_memory<T> ||
  (std::ranges::contiguous_range<T>&&
     gradient_element<std::remove_cv_t<std::ranges::range_value_t<T>>>);

namespace detail {

//! The elements of a gradient as a span, which kernels take as one that they could write.
template <class Gradient>
[[nodiscard]] auto span_of(Gradient&& gradient)
{
  if constexpr (viewed_memory<Gradient>) {
    return gradient_view<std::remove_cvref_t<Gradient>>::of(gradient);
  } else {
    using element = std::ranges::range_value_t<Gradient>;
    return std::span<element>{const_cast<element*>(std::ranges::data(gradient)),
                              std::ranges::size(gradient)};
  }
}

}  // namespace detail

}  // namespace tersum::inline v0
