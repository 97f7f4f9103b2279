// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What kernels and threads on the chunks of an array have in common.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace tersum::inline v0::detail {

//! @brief A launch of `block_chunk<Size>`, with the shared memory of one `block_hadamard`.
template <int Size>
struct chunk_launch {
  static constexpr int threads = block_chunk<Size>::block_threads;
  static constexpr int shared  = static_cast<int>(sizeof(typename block_hadamard<Size>::storage));

  //! The shared memory of a transform, rotating or not.
  template <class Hadamard, class Context>
  [[nodiscard]] TERSUM_BODY static typename Hadamard::storage& storage(Context const& ctx)
  {
    return *static_cast<typename Hadamard::storage*>(ctx.shared());
  }
};

//! A sentence for arrays that no launch takes.
inline constexpr std::string_view too_many_chunks =
  "values has 2^31 chunks or more: pass it in parts";

[[nodiscard]] constexpr bool fits_a_launch(std::uint64_t chunks) noexcept
{
  return chunks <= std::numeric_limits<std::int32_t>::max();
}

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
