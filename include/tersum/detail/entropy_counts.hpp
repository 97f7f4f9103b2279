// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans of codes of unlike lengths are made of.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/chunk_counts.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/detail/streams.hpp>
#include <tersum/layout.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace tersum::inline v0::detail {

//! @brief Streams of equal size: one, which goes to all ranks and holds all chunks, or in two shots one for each rank.
template <class Codec>
class entropy_counts : public chunk_counts<Codec> {
 public:
  constexpr entropy_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : chunk_counts<Codec>(codec, gradient, ranks)
  {
    this->fingerprint_ = mix(this->fingerprint_, 7);
    if constexpr (owner_feeds_back<Codec>) {
      for (int const value : {ranks.size, ranks.rank}) {
        this->fingerprint_ = mix(this->fingerprint_, static_cast<std::uint64_t>(value));
      }
    }
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (!(this->codec_.bits > 0 && this->codec_.bits <= 64)) {
      return {error_code::invalid_argument, "entropy_codec.bits must be above 0 and at most 64"};
    }
    if constexpr (scattering<Codec>) {
      if (!(this->codec_.up >= 0 && this->codec_.up < 2)) {
        return {error_code::invalid_argument,
                "entropy_two_shot_codec.up must be 0 or above, and below 2"};
      }
    }
    if (status const s = chunk_counts<Codec>::check(); !s.ok()) { return s; }
    if (this->chunks() > stream_search::counters * std::uint64_t{stream_search::a_counter} ||
        maximum(part_bytes(), mean_part_bytes()) > std::numeric_limits<std::uint32_t>::max() / 8) {
      return {error_code::invalid_argument,
              "layout.coordinates is too large for entropy_codec, which takes 2^31 coordinates and "
              "messages of up to 2^29 bytes: exchange it in parts"};
    }
    return {};
  }

  //! Bytes that a rank sends to another, a multiple of 16. Whatever the bits, they hold steps, lengths, and a chunk with codes
  //! from -1 to 1: so something is sent of every gradient, and feedback drains.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept
  {
    if constexpr (scattering<Codec>) {
      return bytes_of(share_up());
    } else {
      return bytes_of(2);
    }
  }
  //! Bytes that the owner of a part sends to every other rank, likewise.
  [[nodiscard]] constexpr std::uint64_t mean_part_bytes() const noexcept
  {
    if constexpr (scattering<Codec>) {
      return bytes_of(2 - share_up());
    } else {
      return part_bytes();
    }
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return part_bytes() * sent_parts();
  }
  //! Bytes of all parts of the mean.
  [[nodiscard]] constexpr std::uint64_t mean_bytes() const noexcept
  {
    return mean_part_bytes() * sent_parts();
  }
  //! The most chunks of a stream.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept
  {
    return (this->chunks() + sent_parts() - 1) / sent_parts();
  }
  //! Elements of the owner's residual.
  [[nodiscard]] constexpr std::uint64_t owned_residuals() const noexcept
  {
    if constexpr (!owner_feeds_back<Codec>) { return 0; }
    return keeps_blocks<Codec> ? owned_chunks() : owned_chunks() * Codec::chunk_size;
  }
  //! @name For collectives that move parts in pieces: all of a part must have arrived before any of it is decoded.
  //! @{
  [[nodiscard]] constexpr std::uint64_t words_of_scales() const noexcept
  {
    return part_bytes() / 4;
  }
  [[nodiscard]] constexpr std::uint64_t chunk_words() const noexcept { return part_bytes() / 4; }
  //! @}

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    std::uint64_t const slots = round_up(owned_chunks(), 32);
    std::uint64_t const words = part_bytes() / sizeof(std::uint32_t) * size();
    std::uint64_t const means = mean_part_bytes() / sizeof(std::uint32_t) * size();
    std::uint64_t const more  = scattering<Codec> ? 1 : 0;  // of the mean
    std::uint64_t const apart = more != 0 && feeds_back<Codec> ? 1 : 0;
    return section_list{
      holds<float>(section::stream_values, slots * Codec::chunk_size * (sent_parts() + apart), 16),
      holds<std::uint32_t>(section::stream_bits, slots * size(), 16),
      holds<stream_search>(section::stream_searches, sent_parts() + more, 16),
      holds<std::uint32_t>(section::received, more * words, 16),
      holds<std::uint32_t>(section::payload, apart * words, 16),
      holds<std::uint32_t>(section::gathered, apart != 0 ? means : maximum(words, means), 16),
      holds<float>(section::bypass, this->bypassed())};
  }
  [[nodiscard]] constexpr auto state_sections() const noexcept
  {
    using kept = residual_element<Codec>;
    return section_list{holds<state_header>(section::header, 1),
                        holds<tensor_record>(section::records, this->tensors()),
                        holds<chunk_entry>(section::table, this->chunks()),
                        this->section_of_scales(),
                        holds<float>(section::gain, gains_of<Codec>),
                        holds<kept>(section::owner_residual, owned_residuals()),
                        holds<kept>(section::residual, this->residuals())};
  }
  //! What is sent lies where all ranks' parts are gathered, but where feedback needs it to the end.
  [[nodiscard]] constexpr bool payload_is_apart() const noexcept
  {
    return scattering<Codec> && feeds_back<Codec>;
  }

  //! @name For stages
  //! @{
  //! What this rank sends.
  [[nodiscard]] constexpr stream_set sent() const noexcept
  {
    return make_set(part_bytes(), this->chunks(), sent_parts(), 1);
  }
  //! What all ranks decode.
  [[nodiscard]] constexpr stream_set gathered() const noexcept
  {
    return make_set(mean_part_bytes(), this->chunks(), sent_parts(), size() / sent_parts());
  }
  //! Of two shots: what all ranks have sent of this rank's part.
  [[nodiscard]] constexpr stream_set received() const noexcept
  {
    return make_set(part_bytes(), own_chunks(), 1, size());
  }
  //! Of two shots: this rank's part of the mean.
  [[nodiscard]] constexpr stream_set mean() const noexcept
  {
    return make_set(mean_part_bytes(), own_chunks(), 1, 1);
  }

  //! @param of_mean  Whether of this rank's part of the mean.
  [[nodiscard]] stream_memory memory_of_streams(std::uint32_t* all, bool of_mean) const noexcept
  {
    auto const sections = workspace_sections();
    std::byte* const memory =
      reinterpret_cast<std::byte*>(all) - sections.offset(section::gathered);
    auto* const values = reinterpret_cast<float*>(memory + sections.offset(section::stream_values));
    auto* const searches =
      reinterpret_cast<stream_search*>(memory + sections.offset(section::stream_searches));
    std::uint64_t const before = payload_is_apart() ? sent().slots * sent_parts() : 0;
    return {.values = of_mean ? values + before * Codec::chunk_size : values,
            .bits =
              reinterpret_cast<std::uint32_t*>(memory + sections.offset(section::stream_bits)),
            .searches = of_mean ? searches + sent_parts() : searches};
  }
  //! @}

 private:
  [[nodiscard]] constexpr std::uint64_t size() const noexcept
  {
    return static_cast<std::uint64_t>(maximum(this->ranks().size, 1));
  }
  [[nodiscard]] constexpr std::uint64_t sent_parts() const noexcept
  {
    return scattering<Codec> ? size() : 1;
  }
  [[nodiscard]] constexpr std::uint64_t own_chunks() const noexcept
  {
    return (this->chunks() + size() - 1 - static_cast<std::uint64_t>(this->ranks().rank)) / size();
  }
  //! What owners are sent of `bits` for each coordinate.
  [[nodiscard]] constexpr double share_up() const noexcept
  {
    if (this->codec_.up > 0) { return static_cast<double>(this->codec_.up); }
    return size() > 2 ? .8 : size() == 2 ? .9 : 1;
  }
  //! @param share  Of `bits`, for each of the coordinates of a part.
  [[nodiscard]] constexpr std::uint64_t bytes_of(double share) const noexcept
  {
    if (this->chunks() == 0) { return 0; }
    double const bits = this->codec_.bits > 0 && this->codec_.bits <= 64 ? this->codec_.bits : 0;
    double const kept = share > 0 && share <= 2 ? share : 0;
    double const bytes =
      bits * kept / static_cast<double>(size()) * static_cast<double>(this->compressed()) / 8;
    std::uint64_t const least =
      4 * std::uint64_t{stream_set::head_of(owned_chunks())} + (3 * Codec::chunk_size + 16) / 8;
    return round_up(maximum(static_cast<std::uint64_t>(bytes), least), this->alignment);
  }
  [[nodiscard]] constexpr stream_set make_set(std::uint64_t bytes,
                                              std::uint64_t chunks,
                                              std::uint64_t streams,
                                              std::uint64_t copies) const noexcept
  {
    return {.words   = bytes / sizeof(std::uint32_t),
            .head    = stream_set::head_of(owned_chunks()),
            .chunks  = static_cast<std::uint32_t>(chunks),
            .streams = static_cast<std::uint32_t>(streams),
            .copies  = static_cast<std::uint32_t>(copies),
            .slots   = static_cast<std::uint32_t>(round_up(owned_chunks(), 32))};
  }
};

}  // namespace tersum::inline v0::detail
