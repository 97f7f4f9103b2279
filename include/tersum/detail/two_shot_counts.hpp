// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan of two shots counts: parts that are sent, and parts of the mean.

#pragma once

#include <tersum/detail/chunk_counts.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/state.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Parts of equal size, one for each rank: what is sent, what is received, and what all ranks decode, which
//! without feedback takes the place of what was sent. With feedback that is needed until the end. Where the ways differ
//! parts of the mean lie elsewhere than the parts that were sent, some of which may still have to leave.
template <class Codec>
struct two_shot_counts : chunk_counts<Codec> {
  constexpr two_shot_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : chunk_counts<Codec>(codec, gradient, ranks)
  {
    if constexpr (owner_feeds_back<Codec>) {
      for (int const value : {ranks.size, ranks.rank}) {
        this->fingerprint_ = mix(this->fingerprint_, static_cast<std::uint64_t>(value));
      }
    }
  }

  //! Bytes that one rank sends to another, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept
  {
    std::uint64_t words = owned_chunks() * (chunk_words() + 1);
    if constexpr (selects<Codec>) {
      // Of parts dealt widest first none exceeds the mean by more than the widest chunk.
      words =
        this->travels() ? of_a_rank(this->capacity_words() + chunk_words() * (size() - 1)) : 0;
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
  //! Elements of the owner's residual.
  [[nodiscard]] constexpr std::uint64_t owned_residuals() const noexcept
  {
    return owned_chunks() * Codec::chunk_size;
  }
  //! With fixed chunks: the most chunks that a rank owns.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept
  {
    return of_a_rank(this->chunks());
  }
  //! Words at the end of a part that must have arrived before any chunk of it is decoded.
  [[nodiscard]] constexpr std::uint64_t words_of_scales() const noexcept { return owned_chunks(); }
  //! The most words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    if constexpr (selects<Codec>) { return chunk_counts<Codec>::widest_words(); }
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
  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    std::uint64_t const words = payload_bytes() / sizeof(std::uint32_t);
    return section_list{holds<selection_scratch>(section::selection, selects<Codec> ? 1 : 0),
                        holds<std::uint32_t>(section::places, this->places()),
                        holds<std::uint32_t>(section::order, this->ordered()),
                        holds<std::uint32_t>(section::payload, words),
                        feeds_back<Codec> || ways_differ<Codec>
                          ? holds<std::uint32_t>(section::gathered, mean_bytes() / 4)
                          : in_place_of(section::payload, section::gathered),
                        holds<std::uint32_t>(section::received, words),
                        holds<float>(section::bypass, this->bypassed()),
                        holds<std::byte>(section::agreed, this->agreed_room())};
  }
  [[nodiscard]] constexpr auto state_sections() const noexcept
  {
    std::uint64_t const owned = owner_feeds_back<Codec> ? owned_residuals() : 0;
    return section_list{holds<state_header>(section::header, 1),
                        holds<tensor_record>(section::records, this->tensors()),
                        holds<chunk_entry>(section::table, this->chunks()),
                        this->section_of_scales(),
                        holds<float>(section::gain, gains_of<Codec>),
                        holds<residual_element<Codec>>(section::owner_residual, owned),
                        holds<residual_element<Codec>>(section::residual, this->residuals())};
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
