// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The form in which every rank gathers the codes of all ranks: one round, one encoding.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_counts.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/form/detail/part_args.hpp>
#include <tersum/form/detail/suits_coder.hpp>
#include <tersum/form/form.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <string_view>

namespace tersum::inline v0::detail {

//! @brief A part for each rank, which holds all chunks that travel.
template <class Codec>
struct gather_counts : codec_counts<Codec> {
  using codec_counts<Codec>::codec_counts;
  using parts_type = part_args<residual_element<Codec>>;

  //! Bytes that a rank sends to all others, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept
  {
    constexpr std::uint64_t words =
      code_words<typename Codec::quantizer_type>(Codec::chunk_size) + 1;
    std::uint64_t const all = this->chunks() * words * sizeof(std::uint32_t);
    return round_up(this->choice_.bytes_of(all), this->alignment);
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
    args.parts.part_words = part_bytes() / sizeof(std::uint32_t);
    args.parts.share      = 1.0f / static_cast<float>(this->ranks_of());
    args.parts.gathered =
      work.take_bytes<std::uint32_t>("gathered", this->ranks_of() * part_bytes());
    work.share("gathered", "payload");
    args.payload = args.parts.gathered;
    if (args.payload != nullptr) { args.payload += args.rank * args.parts.part_words; }
  }
};

}  // namespace tersum::inline v0::detail

namespace tersum::inline v0 {

//! @brief Every rank gathers the codes of all ranks, decodes and adds them.
//!
//! Use it among 2 or 3 ranks, or where the latency of a round weighs more than its bytes. It has these rounds: the sum of
//! norms, if the chunker asks for them; an all-gather of the ranks' codes. The mean is added in float, in the order of the
//! ranks, by every rank alike, so all end with the same bits. The error is that of one encoding, averaged as the gradients
//! are. A rank receives n - 1 payloads: among 2 ranks as many bytes as of two shots, among n half of n times as many.
//!
//! The codes are those of `two_shot`, which takes the same policies. Feedback keeps what a rank's own codes lost.
struct gather : usual_form {
  constexpr description describe() const { return {"gather"}; }

  template <class Coder>
  using rounds_of = stage_list<rounds::gather_parts>;
  template <class Coder>
  using payload_kind = payload::copies;
  template <class Codec, class Coder>
  using counts = detail::gather_counts<Codec>;

  template <bool Ask, class Chunker, class Rotator, class Coder, class Feedback, class Metric>
  [[nodiscard]] static constexpr std::string_view suits() noexcept
  {
    return detail::suits_own_scales<Ask, Chunker, Rotator, Coder>();
  }
};
static_assert(form<gather>);

}  // namespace tersum::inline v0
