// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What kernels on the chunks of an array have in common.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/config.hpp>
#include <tersum/rotate/block_hadamard.hpp>

#include <cstdint>
#include <limits>
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

}  // namespace tersum::inline v0::detail
