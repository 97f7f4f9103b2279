// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan of converted coordinates counts.

#pragma once

#include <tersum/detail/chunk_counts.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Converted coordinates: all of them, and those that bypass before them; or the chunks that travel.
template <class Codec>
struct cast_counts : chunk_counts<Codec> {
  using chunk_counts<Codec>::chunk_counts;
  using element = typename Codec::quantizer_type::element;

  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    if constexpr (selects<Codec>) { return this->capacity_words() * sizeof(std::uint32_t); }
    return this->compressed() * sizeof(element);
  }

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    auto const bypass  = holds<float>(section::bypass, this->bypassed());
    auto const payload = holds<element>(
      section::payload, payload_bytes() / sizeof(element), selects<Codec> ? 16 : alignof(element));
    if constexpr (selects<Codec>) {
      return section_list{holds<selection_scratch>(section::selection, 1),
                          holds<std::uint32_t>(section::places, this->places()),
                          payload,
                          bypass,
                          holds<std::byte>(section::agreed, this->agreed_room())};
    } else {
      return section_list{bypass, payload};
    }
  }
};

}  // namespace tersum::inline v0::detail
