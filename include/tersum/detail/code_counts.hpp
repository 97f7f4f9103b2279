// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan of codes that are summed counts, and whether steps and lanes suit the world.

#pragma once

#include <tersum/detail/chunk_counts.hpp>
#include <tersum/range/chunk_step.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/widening_sum.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace tersum::inline v0::detail {

//! The rank in whose shard a piece of a tensor lies tells the others its `tensor_record::ratio`, in a scalar that they sum.
template <class Codec>
inline constexpr bool tells_ratios = summing<Codec>&& tracks<Codec>;

//! What a plan says of more ranks than a reducer's lanes can sum.
template <class Reducer>
inline constexpr std::string_view too_many_ranks =
  "world.size is too large for the reducer's lanes: use wider lanes, fewer code bits or saturating_sum";
template <int CodeBits>
inline constexpr std::string_view too_many_ranks<widening_sum<CodeBits, 16>> =
  "world.size is too large for lanes of 16 bits: use widening_sum<q, 32>";

//! @brief A step for each chunk, and the packed codes of all chunks or of those that travel.
template <class Codec>
struct code_counts : chunk_counts<Codec> {
  using chunk_counts<Codec>::chunk_counts;

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = chunk_counts<Codec>::check(); !s.ok()) { return s; }
    using reducer = typename Codec::reducer_type;
    // What suits is known in root mean squares, not in largest magnitudes.
    constexpr bool suits  = in_root_mean_squares && requires { reducer::best_clip(1); };
    float const clip      = this->codec_.coder.range.clip;
    constexpr float limit = std::numeric_limits<float>::max();
    if (!(clip <= limit && (clip > 0 || (suits && clip == 0)))) {
      return {
        error_code::invalid_argument,
        "the range's clip must be above 0, or 0 for what suits the world: under saturating_sum, for "
        "rms_range and global_range"};
    }
    if constexpr (requires(Codec const& codec) { codec.coder.range.check(); }) {
      if (status const s = this->codec_.coder.range.check(); !s.ok()) { return s; }
    }
    auto const& headroom = this->codec_.coder.range.headroom;
    if constexpr (requires { headroom.check(); }) {
      if (status const s = headroom.check(); !s.ok()) { return s; }
    }
    // Where all lanes saturate, the sum looks as wide as its range: the next range must be wider, in every width.
    if constexpr (suits && tracks<Codec> && requires { headroom.margin; }) {
      if ((several_bits<Codec> || clip == 0) && least_clip() * headroom.margin <= 1) {
        return {
          error_code::invalid_argument,
          "the range's clip of 0, as of several widths, stands for one that could not grow with so many ranks in "
          "such lanes: set a larger margin of the head-room, or a clip whose product with it is above 1"};
      }
    }
    if (this->world_.size > reducer::max_world(Codec::quantizer_type::max_level)) {
      return {error_code::world_too_large, too_many_ranks<reducer>};
    }
    return {};
  }

  //! @brief What `tensor_record::ratio` is before the first exchange. The rounding of one rank's normal coordinates loses their
  //! own energy in steps of 2.5 root mean squares. Steps of up to 2.25 leave room for clipping, so that the mean of
  //! independent gradients is not worse than none.
  [[nodiscard]] constexpr float first_ratio() const noexcept
  {
    float ratio          = static_cast<float>(this->world_.size);
    auto const& headroom = this->codec_.coder.range.headroom;
    if constexpr (in_root_mean_squares && tracks<Codec> &&
                  requires { headroom.first_ratio(1, 1.0f); }) {
      for_each_width([&](int max_level, float clip) {
        if (!(clip > 0)) { return; }  // which check() refuses
        float const widest = 2.25f * static_cast<float>(max_level) / clip;
        ratio              = minimum(ratio, headroom.first_ratio(this->world_.size, widest));
      });
    }
    return ratio;
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

 private:
  static constexpr bool in_root_mean_squares = norms_travel<Codec> || per_tensor<Codec>;

  //! Calls visit(max_level, clip) for the width of the codes, or for each.
  template <class Visitor>
  constexpr void for_each_width(Visitor const& visit) const
  {
    using reducer = typename Codec::reducer_type;
    if constexpr (several_bits<Codec>) {
      [&]<int... Level>(std::integer_sequence<int, Level...>)
      {
        (visit((1 << (Codec::chunker_type::widths[Level] - 1)) - 1,
               reducer::template with_bits<Codec::chunker_type::widths[Level]>::best_clip(
                 this->world_.size)),
         ...);
      }
      (std::make_integer_sequence<int, Codec::chunker_type::level_count>{});
    } else {
      float clip = this->codec_.coder.range.clip;
      if constexpr (requires { reducer::best_clip(1); }) {
        if (clip == 0) { clip = reducer::best_clip(this->world_.size); }
      }
      visit(Codec::quantizer_type::max_level, clip);
    }
  }
  [[nodiscard]] constexpr float least_clip() const noexcept
  {
    float least = std::numeric_limits<float>::max();
    for_each_width([&](int, float clip) { least = minimum(least, clip); });
    return least;
  }
};

}  // namespace tersum::inline v0::detail
