// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan of two shots counts: parts that are sent, and parts of the mean.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/codec_counts.hpp>
#include <tersum/form/detail/part_args.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/detail/code_words.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Parts of equal size, one for each rank: what is sent, what is received, and what all ranks decode, which
//! without feedback takes the place of what was sent. With feedback that is needed until the end. Where the ways differ
//! parts of the mean lie elsewhere than the parts that were sent, some of which may still have to leave.
template <class Codec>
struct two_shot_counts : codec_counts<Codec> {
  using residual = residual_element<Codec>;
  using parts_type =
    std::conditional_t<ways_differ<Codec>, two_way_args<residual>, part_args<residual>>;

  using codec_counts<Codec>::codec_counts;

  //! Bytes that one rank sends to another, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept
  {
    std::uint64_t words = owned_chunks() * (chunk_words() + 1);
    if constexpr (selects<Codec>) {
      // Of parts dealt widest first none exceeds the mean by more than the widest chunk.
      words = this->travels()
                ? of_a_rank(this->choice_.capacity_words() + chunk_words() * (size() - 1))
                : 0;
    }
    return round_up(words * sizeof(std::uint32_t), this->alignment);
  }
  //! Bytes that the owner of a part sends to every other rank, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t mean_part_bytes() const noexcept
  {
    if (!ways_differ<Codec>) { return part_bytes(); }
    return round_up(owned_chunks() * (mean_chunk_words() + 1) * sizeof(std::uint32_t),
                    this->alignment);
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return part_bytes() * size();
  }
  //! Bytes of all parts of the mean.
  [[nodiscard]] constexpr std::uint64_t mean_bytes() const noexcept
  {
    return mean_part_bytes() * size();
  }
  //! With fixed chunks: the most chunks that a rank owns.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept
  {
    return of_a_rank(this->chunks());
  }
  //! The most words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    if constexpr (selects<Codec>) { return chunk_choice<Codec>::widest_words(); }
    return code_words<typename Codec::quantizer_type>(Codec::chunk_size);
  }
  //! The same of the mean.
  [[nodiscard]] static constexpr std::uint64_t mean_chunk_words() noexcept
  {
    if (!ways_differ<Codec>) { return chunk_words(); }
    return code_words<typename Codec::mean_quantizer_type>(Codec::chunk_size);
  }
  //! What parts of equal size may leave free: see `part_bytes`.
  [[nodiscard]] static constexpr double usable_words(double words, world const& ranks) noexcept
  {
    return words - free_words(chunk_words(), ranks);
  }
  constexpr void take_parts(section_list& work, auto& args) const noexcept
  {
    auto& parts      = args.parts;
    args.payload     = work.take_bytes<std::uint32_t>("payload", payload_bytes());
    parts.gathered   = args.payload;
    parts.part_words = part_bytes() / sizeof(std::uint32_t);
    if constexpr (feeds_back<Codec> || ways_differ<Codec>) {
      parts.gathered = work.take_bytes<std::uint32_t>("gathered", mean_bytes());
    } else {
      work.share("payload", "gathered");
    }
    if constexpr (ways_differ<Codec>) {
      parts.mean_words = mean_part_bytes() / sizeof(std::uint32_t);
    }
  }
  constexpr void take_received(section_list& work, auto& args) const noexcept
  {
    args.parts.received = work.take_bytes<std::uint32_t>("received", payload_bytes());
  }
  constexpr void take_owned(section_list& state, auto& args) const noexcept
  {
    args.parts.owner_residual = take_residual<Codec>(
      state, "owner_residual", owner_feeds_back<Codec>, owned_chunks() * Codec::chunk_size);
    state.own_last(this->own_part());
  }

 private:
  [[nodiscard]] static constexpr double free_words(std::uint64_t widest,
                                                   world const& ranks) noexcept
  {
    auto const size = static_cast<std::uint64_t>(ranks.size);
    return static_cast<double>(widest * (size - 1) + size * (two_shot_counts::alignment / 4));
  }
  [[nodiscard]] constexpr std::uint64_t size() const noexcept
  {
    return static_cast<std::uint64_t>(maximum(this->ranks().size, 1));
  }
  [[nodiscard]] constexpr std::uint64_t of_a_rank(std::uint64_t number) const noexcept
  {
    return (number + size() - 1) / size();
  }
};

}  // namespace tersum::inline v0::detail
