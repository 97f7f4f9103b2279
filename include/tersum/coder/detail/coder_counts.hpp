// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans count and check of a coder: words on the wire, and what a width loses.

#pragma once

#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/status.hpp>

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace tersum::inline v0::detail {

//! @brief Codes in lanes that are added, in the widths that a chunker gives.
template <class Reducer>
struct summed_widths {
  //! Words of a chunk that do not lie with its codes.
  static constexpr std::uint32_t words_apart = 0;
  //! Words of the payload that a unit of a selection's cost stands for; where widths differ, two bits a coordinate.
  template <class Chunker>
  static constexpr std::uint32_t unit_words = Chunker::chunk_size / 32 *
                                              (has_several_bits<Chunker>() ? 2
                                                                           : Reducer::lane_bits);

  [[nodiscard]] static constexpr std::uint32_t words(int chunk_size, int bits) noexcept
  {
    return static_cast<std::uint32_t>(chunk_size / 32 * bits);
  }
  //! What codes of a width lose of a chunk's energy.
  template <int Bits>
  [[nodiscard]] static constexpr float distortion(int world) noexcept
  {
    return Reducer::template with_bits<Bits>::distortion(world);
  }
};

//! @brief Codes with scales of their own: ranks agree on nothing for them.
template <class Quantizer>
struct scaled_counts {
  static constexpr std::uint32_t words_apart = 1;
  template <class Chunker>
  static constexpr std::uint32_t unit_words = 1;

  [[nodiscard]] static constexpr std::uint32_t words(int chunk_size, int bits) noexcept
  {
    return static_cast<std::uint32_t>(chunk_size / 32 * bits + scale_words<Quantizer>(chunk_size));
  }
  template <int Bits>
  [[nodiscard]] static constexpr float distortion(int) noexcept
  {
    return Quantizer::template with_bits<Bits>::distortion();
  }
  [[nodiscard]] static constexpr status check(auto const&, world const&) noexcept { return {}; }
  //! What `tensor_record::ratio` is before the first exchange.
  [[nodiscard]] static constexpr float first_ratio(auto const&, world const& ranks) noexcept
  {
    return static_cast<float>(ranks.size);
  }
};

template <class Coder>
struct coder_counts : scaled_counts<typename Coder::quantizer_type> {
};

//! @brief The same of elements, of which those that the wire adds have no padding.
template <conversion Coder>
struct coder_counts<Coder> : scaled_counts<Coder> {
  using element = typename Coder::element;
  template <class Chunker>
  static constexpr std::uint32_t unit_words = Chunker::chunk_size * sizeof(element) / 4;

  [[nodiscard]] static constexpr std::uint64_t wire_bytes(auto const& counts) noexcept
  {
    return counts.compressed() * sizeof(element);
  }
};

//! @brief Codes that are added, in a step for each chunk.
template <adding_coder Coder>
struct coder_counts<Coder> : summed_widths<typename Coder::reducer_type> {
  using range                      = typename Coder::range_type;
  using quantizer                  = typename Coder::quantizer_type;
  using reducer                    = typename Coder::reducer_type;
  static constexpr bool of_chunks  = measures<range, statistic::chunk_square_norm>;
  static constexpr bool of_tensors = measures<range, statistic::tensor_square_norm>;
  static constexpr bool tracked    = range::headroom_type::tracked;
  // What suits is known in root mean squares, not in largest magnitudes.
  static constexpr bool in_root_mean_squares = of_chunks || of_tensors;

  //! Bytes of the codes of all chunks.
  [[nodiscard]] static constexpr std::uint64_t wire_bytes(auto const& counts) noexcept
  {
    return counts.chunks() * (counts.chunk_size / 8 * reducer::lane_bits);
  }
  template <class Codec>
  [[nodiscard]] static constexpr status check(Codec const& codec, world const& ranks) noexcept
  {
    constexpr bool suits  = in_root_mean_squares && requires { reducer::best_clip(1); };
    auto const& given     = codec.coder.range;
    constexpr float limit = std::numeric_limits<float>::max();
    if (!(given.clip <= limit && (given.clip > 0 || (suits && given.clip == 0)))) {
      return {
        error_code::invalid_argument,
        "the range's clip must be above 0, or 0 for what suits the world: under saturating_sum, for "
        "rms_range and global_range"};
    }
    for (status const s : {check_of(given), check_of(given.headroom)}) {
      if (!s.ok()) { return s; }
    }
    // Where all lanes saturate, the sum looks as wide as its range: the next range must be wider, in every width.
    if constexpr (suits && tracked && requires { given.headroom.margin; }) {
      float least = limit;
      for_each_width(codec, ranks, [&](int, float clip) { least = minimum(least, clip); });
      if ((has_several_bits<typename Codec::chunker_type>() || given.clip == 0) &&
          least * given.headroom.margin <= 1) {
        return {
          error_code::invalid_argument,
          "the range's clip of 0, as of several widths, stands for one that could not grow with so many ranks in "
          "such lanes: set a larger margin of the head-room, or a clip whose product with it is above 1"};
      }
    }
    if (ranks.size > reducer::max_world(quantizer::max_level)) {
      return {
        error_code::world_too_large,
        "world.size is too large for the reducer's lanes: use wider lanes, fewer code bits or saturating_sum"};
    }
    return {};
  }

  //! @brief The rounding of one rank's normal coordinates loses their own energy in steps of 2.5 root mean squares. Steps of up to
  //! 2.25 leave room for clipping, so that the mean of independent gradients is not worse than none.
  template <class Codec>
  [[nodiscard]] static constexpr float first_ratio(Codec const& codec, world const& ranks) noexcept
  {
    float ratio          = static_cast<float>(ranks.size);
    auto const& headroom = codec.coder.range.headroom;
    if constexpr (in_root_mean_squares && tracked && requires { headroom.first_ratio(1, 1.0f); }) {
      for_each_width(codec, ranks, [&](int max_level, float clip) {
        if (!(clip > 0)) { return; }  // which check() refuses
        float const widest = 2.25f * static_cast<float>(max_level) / clip;
        ratio              = minimum(ratio, headroom.first_ratio(ranks.size, widest));
      });
    }
    return ratio;
  }

 private:
  template <class Policy>
  [[nodiscard]] static constexpr status check_of(Policy const& policy) noexcept
  {
    if constexpr (requires { policy.check(); }) { return policy.check(); }
    return {};
  }
  //! Calls visit(max_level, clip) for the width of the codes, or for each.
  template <class Codec, class Visitor>
  static constexpr void for_each_width(Codec const& codec, world const& ranks, Visitor const& visit)
  {
    using chunker = typename Codec::chunker_type;
    if constexpr (has_several_bits<chunker>()) {
      [&]<int... Level>(std::integer_sequence<int, Level...>)
      {
        (visit((1 << (chunker::widths[Level] - 1)) - 1,
               reducer::template with_bits<chunker::widths[Level]>::best_clip(ranks.size)),
         ...);
      }
      (std::make_integer_sequence<int, chunker::level_count>{});
    } else {
      float clip = codec.coder.range.clip;
      if constexpr (requires { reducer::best_clip(1); }) {
        if (clip == 0) { clip = reducer::best_clip(ranks.size); }
      }
      visit(quantizer::max_level, clip);
    }
  }
};

}  // namespace tersum::inline v0::detail
