// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan of gathered codes counts: a part for each rank.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/codec_counts.hpp>
#include <tersum/form/detail/part_args.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/detail/code_words.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief A part for each rank, which holds all chunks that travel.
template <class Codec>
struct gather_counts : codec_counts<Codec> {
  using codec_counts<Codec>::codec_counts;
  using parts_type = part_args<residual_element<Codec>>;

  //! Bytes that a rank sends to all others, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept
  {
    std::uint64_t words =
      this->chunks() * (code_words<typename Codec::quantizer_type>(Codec::chunk_size) + 1);
    if constexpr (selects<Codec>) { words = this->choice_.capacity_words(); }
    return round_up(words * sizeof(std::uint32_t), this->alignment);
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept { return part_bytes(); }
  //! What rounding up to whole 16 bytes may take.
  [[nodiscard]] static constexpr double usable_words(double words, world const&) noexcept
  {
    return words - gather_counts::alignment / 4.0;
  }
  //! What this rank sends lies where all others receive it.
  constexpr void take_parts(section_list& work, auto& args) const noexcept
  {
    auto const ranks      = static_cast<std::uint64_t>(maximum(this->ranks().size, 1));
    args.parts.part_words = part_bytes() / sizeof(std::uint32_t);
    args.parts.gathered   = work.take_bytes<std::uint32_t>("gathered", ranks * part_bytes());
    work.share("gathered", "payload");
    args.payload = args.parts.gathered;
    if (args.payload != nullptr) { args.payload += args.rank * args.parts.part_words; }
  }
};

}  // namespace tersum::inline v0::detail
