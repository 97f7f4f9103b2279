// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How many words the codes of a chunk take where chunks have scales of their own.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Words of the scales of a chunk's groups. The four groups that begin at the same place of the chunk's quarters
//! share a word, or two.
template <class Quantizer>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr int scale_words(int chunk_size) noexcept
{
  if constexpr (group_quantizer<Quantizer>) {
    return chunk_size / (4 * Quantizer::block) * (Quantizer::scale::bits / 8);
  }
  return 0;
}

//! @brief Words of a chunk's codes and of the scales of its groups, without the chunk's own scale.
template <class Quantizer>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t code_words(int chunk_size) noexcept
{
  return static_cast<std::uint32_t>(chunk_size / 32 * Quantizer::bits +
                                    scale_words<Quantizer>(chunk_size));
}

}  // namespace tersum::inline v0::detail
