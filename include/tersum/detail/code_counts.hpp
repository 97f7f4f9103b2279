// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan of codes that are summed counts, and whether steps and lanes suit the world.

#pragma once

#include <tersum/detail/chunk_counts.hpp>
#include <tersum/range/chunk_step.hpp>
#include <tersum/range/rms_range.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace tersum::inline v0::detail {

//! @brief A step for each chunk, and the packed codes of all chunks or of those that travel.
template <class Codec>
struct code_counts : chunk_counts<Codec> {
  using chunk_counts<Codec>::chunk_counts;

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = chunk_counts<Codec>::check(); !s.ok()) { return s; }
    using reducer = typename Codec::reducer_type;
    // What suits is known in root mean squares, not in largest magnitudes.
    constexpr bool by_norm = norms_travel<Codec> || per_tensor<Codec>;
    constexpr bool suits   = by_norm && requires { reducer::best_clip(1); };
    float const clip       = this->codec_.range.clip;
    constexpr float limit  = std::numeric_limits<float>::max();
    if (!(clip <= limit && (clip > 0 || (suits && clip == 0)))) {
      return {
        error_code::invalid_argument,
        "the range's clip must be above 0, or 0 for what suits the world: under saturating_sum, for "
        "rms_range and global_range"};
    }
    auto const& headroom = this->codec_.range.headroom;
    if constexpr (requires { headroom.check(); }) {
      if (status const s = headroom.check(); !s.ok()) { return s; }
    }
    // Where all lanes saturate, the sum looks as wide as its range: the next range must be wider. Of several widths the
    // wider ones see to that.
    if constexpr (suits && tracks<Codec> && !several_bits<Codec> && requires { headroom.margin; }) {
      if (clip == 0 && reducer::best_clip(this->world_.size) * headroom.margin <= 1) {
        return {
          error_code::invalid_argument,
          "the range's clip of 0 stands for one that could not grow with so many ranks in such lanes: set a "
          "clip whose product with the head-room's margin is above 1"};
      }
    }
    if (this->world_.size > reducer::max_world(Codec::quantizer_type::max_level)) {
      return {
        error_code::world_too_large,
        "world.size is too large for the reducer's lanes: use wider lanes, fewer code bits or saturating_sum"};
    }
    return {};
  }

  [[nodiscard]] constexpr std::uint64_t measured_scalars() const noexcept
  {
    if constexpr (per_tensor<Codec>) { return this->tensors(); }
    constexpr bool both = tracks<Codec> && !norms_travel<Codec>;
    return this->chunks() + (both ? this->tensors() : 0);
  }

  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    if constexpr (selects<Codec>) { return this->capacity_words() * sizeof(std::uint32_t); }
    return this->chunks() * (Codec::chunk_size / 8 * Codec::reducer_type::lane_bits);
  }

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    std::uint64_t const rotated = Codec::rotates_all ? this->chunks() * Codec::chunk_size : 0;
    return section_list{
      holds<chunk_step>(section::steps, this->chunks()),
      holds<float>(section::rotated, rotated),
      holds<selection_scratch>(section::selection, selects<Codec> ? 1 : 0),
      holds<std::uint32_t>(section::places, this->places()),
      holds<std::uint32_t>(section::payload, payload_bytes() / sizeof(std::uint32_t)),
      holds<float>(section::bypass, this->bypassed()),
      holds<std::byte>(section::agreed, this->agreed_room())};
  }
};

}  // namespace tersum::inline v0::detail
