// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of an array on the CPU, the last one padded with zeros.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief Calls body(first) with the `Size` coordinates of a chunk: in place if the array has them all, otherwise with a copy
//! as floats, padded with zeros.
template <int Size, class Element, class Body>
void with_whole_chunk(std::span<Element const> values, std::uint64_t chunk, Body const& body)
{
  std::size_t const begin = chunk * Size;
  std::size_t const left  = values.size() - begin;
  if (left >= Size) { return body(values.data() + begin); }
  alignas(64) float copy[extent(Size)] = {};
  for (std::size_t i = 0; i < left; ++i) { copy[i] = to_float(values[begin + i]); }
  body(static_cast<float const*>(copy));
}

//! @brief Calls body(to), which writes the `Size` coordinates of a chunk, and keeps those that the array has.
template <int Size, class Element, class Body>
void write_whole_chunk(std::span<Element> values, std::uint64_t chunk, Body const& body)
{
  std::size_t const begin = chunk * Size;
  std::size_t const left  = values.size() - begin;
  if (left >= Size) { return body(values.data() + begin); }
  alignas(64) Element copy[extent(Size)];
  body(static_cast<Element*>(copy));
  std::copy_n(copy, left, values.data() + begin);
}

}  // namespace tersum::inline v0::detail
