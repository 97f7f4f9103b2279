// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans of codecs have in common whose chunks are single coordinates.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/state.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Each coordinate of one vector is a chunk. Nothing bypasses, and nothing is agreed on.
template <class Codec>
class coordinate_counts : public plan_counts<Codec> {
 public:
  constexpr coordinate_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : plan_counts<Codec>(codec, gradient, ranks)
  {
    this->chunks_     = gradient.coordinates;
    this->compressed_ = gradient.coordinates;
  }

  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept { return 0; }
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept { return 0; }

  [[nodiscard]] constexpr auto state_sections() const noexcept
  {
    return section_list{holds<state_header>(section::header, 1),
                        holds<tensor_record>(section::records, this->tensors()),
                        holds<float>(section::gain, gains_of<Codec>),
                        holds<residual_element<Codec>>(
                          section::residual, feeds_back<Codec> ? this->coordinates() : 0)};
  }

  template <class Visitor>
  constexpr void for_each_record(Visitor const&) const
  {
  }
};

}  // namespace tersum::inline v0::detail
