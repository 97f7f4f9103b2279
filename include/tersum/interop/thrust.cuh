// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Thrust's device vectors, and arrays of CUDA's `__half` and `__nv_bfloat16`, as gradients without a cast.

#pragma once

#include <tersum/exchange/exchange.hpp>
#include <tersum/types.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/device_vector.h>

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

template <class T>
struct element_twin {
  using type = T;
};
template <>
struct element_twin<__half> {
  using type = half;
};
template <>
struct element_twin<__nv_bfloat16> {
  using type = bfloat16;
};

//! @brief The element of tersum that has the bits of one of CUDA; any other type is itself.
template <class T>
using element_twin_t = typename element_twin<T>::type;

static_assert(sizeof(__half) == sizeof(half) && alignof(__half) == alignof(half));
static_assert(sizeof(__nv_bfloat16) == sizeof(bfloat16) &&
              alignof(__nv_bfloat16) == alignof(bfloat16));

template <class T>
concept cuda_element = std::same_as<T, __half> || std::same_as<T, __nv_bfloat16>;

}  // namespace detail

//! @brief The memory of a device vector: for gradients, and as bytes for states and workspaces. It holds until a resize.
template <class T, class Allocator>
[[nodiscard]] auto device_span(thrust::device_vector<T, Allocator>& memory)
{
  using twin = detail::element_twin_t<T>;
  return std::span{reinterpret_cast<twin*>(thrust::raw_pointer_cast(memory.data())), memory.size()};
}

//! The same, to read.
template <class T, class Allocator>
[[nodiscard]] auto device_span(thrust::device_vector<T, Allocator> const& memory)
{
  using twin = detail::element_twin_t<T>;
  return std::span{reinterpret_cast<twin const*>(thrust::raw_pointer_cast(memory.data())),
                   memory.size()};
}

//! A vector of float, half, bfloat16, `__half` or `__nv_bfloat16` is a gradient.
template <class T, class Allocator>
requires gradient_element<detail::element_twin_t<T>>
struct gradient_view<thrust::device_vector<T, Allocator>> {
  [[nodiscard]] static auto of(thrust::device_vector<T, Allocator>& memory)
  {
    return device_span(memory);
  }
};

//! So is any contiguous range of CUDA's elements, such as `std::span<__half>` over memory of the device.
template <std::ranges::contiguous_range Range>
requires writable_memory<Range> && detail::cuda_element<std::ranges::range_value_t<Range>>
struct gradient_view<Range> {
  [[nodiscard]] static auto of(Range& memory)
  {
    using twin = detail::element_twin_t<std::ranges::range_value_t<Range>>;
    return std::span{reinterpret_cast<twin*>(std::ranges::data(memory)), std::ranges::size(memory)};
  }
};

}  // namespace tersum::inline v0
