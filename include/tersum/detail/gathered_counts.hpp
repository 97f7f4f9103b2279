// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan counts of codes that every rank gathers from all ranks.

#pragma once

#include <tersum/detail/chunk_counts.hpp>
#include <tersum/quantize/detail/code_words.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief A part for each rank, which holds all chunks that travel.
template <class Codec>
struct gathered_counts : chunk_counts<Codec> {
  using chunk_counts<Codec>::chunk_counts;

  //! Bytes that a rank sends to all others, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept
  {
    std::uint64_t words = this->chunks() * (chunk_words() + 1);
    if constexpr (selects<Codec>) { words = this->travels() ? this->capacity_words() : 0; }
    return round_up(words * sizeof(std::uint32_t), this->alignment);
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept { return part_bytes(); }
  //! The most words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    if constexpr (selects<Codec>) { return chunk_counts<Codec>::widest_words(); }
    return code_words<typename Codec::quantizer_type>(Codec::chunk_size);
  }
  //! What rounding up to whole 16 bytes may take.
  [[nodiscard]] static constexpr double usable_words(double words, world const&) noexcept
  {
    return words - gathered_counts::alignment / 4.0;
  }

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    auto const ranks = static_cast<std::uint64_t>(maximum(this->ranks().size, 1));
    return section_list{
      holds<selection_scratch>(section::selection, selects<Codec> ? 1 : 0),
      holds<std::uint32_t>(section::places, this->places()),
      holds<std::uint32_t>(section::order, this->ordered()),
      holds<std::uint32_t>(section::gathered, ranks * part_bytes() / sizeof(std::uint32_t)),
      in_place_of(section::gathered, section::payload),
      holds<float>(section::bypass, this->bypassed()),
      holds<std::byte>(section::agreed, this->agreed_room())};
  }
};

}  // namespace tersum::inline v0::detail
