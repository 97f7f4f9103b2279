// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs whose codes every rank gathers from all ranks, decodes and adds: one round, one encoding.

#pragma once

#include <tersum/chunk/norm_log.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/chunk_counts.hpp>
#include <tersum/detail/codebook_codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

//! @brief A part for each rank, which holds all chunks that travel.
template <class Codec>
struct gathered_counts : chunk_counts<Codec> {
  using chunk_counts<Codec>::chunk_counts;

  //! Bytes that a rank sends to all others, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept
  {
    std::uint64_t words = this->chunks() * (chunk_words() + 1);
    if constexpr (selects<Codec>) { words = this->travels() ? this->capacity_words() : 0; }
    return round_up(words * sizeof(std::uint32_t), this->alignment);
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept { return part_bytes(); }
  //! The most words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    if constexpr (selects<Codec>) { return chunk_counts<Codec>::widest_words(); }
    return code_words<typename Codec::quantizer_type>(Codec::chunk_size);
  }
  //! What rounding up to whole 16 bytes may take.
  [[nodiscard]] static constexpr double usable_words(double words, world const&) noexcept
  {
    return words - gathered_counts::alignment / 4.0;
  }

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    auto const ranks = static_cast<std::uint64_t>(maximum(this->ranks().size, 1));
    return section_list{
      holds<selection_scratch>(section::selection, selects<Codec> ? 1 : 0),
      holds<std::uint32_t>(section::places, this->places()),
      holds<std::uint32_t>(section::order, this->ordered()),
      holds<std::uint32_t>(section::gathered, ranks * part_bytes() / sizeof(std::uint32_t)),
      in_place_of(section::gathered, section::payload),
      holds<float>(section::bypass, this->bypassed()),
      holds<std::byte>(section::agreed, this->agreed_room())};
  }
};

}  // namespace detail

//! @brief Chunks are rotated and rounded to a codebook; every rank gathers the codes of all ranks, decodes and adds them.
//!
//! Use it among 2 or 3 ranks, or where the latency of a round weighs more than its bytes. It has these rounds: the sum of
//! norms, if the chunker asks for them; an all-gather of the ranks' codes. The mean is added in float, in the order of the
//! ranks, by every rank alike, so all end with the same bits. The error is that of one encoding, averaged as the gradients
//! are. A rank receives n - 1 payloads: among 2 ranks as many bytes as of two shots, among n half of n times as many.
//!
//! The codes are those of `two_shot_codec`, with a scale for each chunk of each rank.
//!
//! Feedback keeps what a rank's own codes lost.
//! @tparam Chunker    `fixed_chunks<C>` or `allocated_chunks<C, Widths...>` of up to 16 bits, C from 256.
//! @tparam Rotator    `partial_hadamard<C>` for a codebook, `no_rotation` for blocks and casts.
//! @tparam Quantizer  `lloyd_max<q>`, `cast<T>` or a quantizer of blocks; under `allocated_chunks` any width of it.
//! @tparam Feedback   `no_feedback` or `error_feedback`.
//! @tparam Metric     `plain_metric`, `given_diagonal` or `kept_diagonal`.
template <chunker Chunker,
          rotator Rotator,
          part_quantizer Quantizer,
          feedback Feedback = no_feedback,
          metric Metric     = plain_metric>
struct gathered_codec {
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using quantizer_type = Quantizer;
  using feedback_type  = Feedback;
  using metric_type    = Metric;
  using agreement_kind = agreement::norms_if<Chunker>;
  using payload_kind   = payload::copies;
  using dither_type    = typename detail::dither_of<Quantizer>::type;
  using norm_scalar    = bfloat16;
  using agreed_op      = norm_sum<norm_scalar>;
  using rotation       = typename detail::rotation_of<Rotator, Chunker::chunk_size>::type;
  using counts_type    = detail::gathered_counts<gathered_codec>;

  static constexpr bool rotates_chunks    = detail::transforms_registers<rotation>;
  static constexpr bool rotates_in_memory = !has_packed_rotation<Rotator, Chunker::chunk_size>;
  static constexpr bool rotates_all       = false;
  static constexpr int chunk_size         = Chunker::chunk_size;

  //! The order of an exchange.
  using stages =
    join_stages<stage::open,
                stage::gather_bypass,
                stages_if<detail::chooses_by_norm<Chunker>(), stage::measure, rounds::agree>,
                rounds::sum_bypass,
                stages_if<detail::chooses_by_norm<Chunker>(), stage::select, stage::derive_steps>,
                stage::encode,
                rounds::gather_parts,
                stage::return_bypass,
                stage::decode,
                stage::finish>;

  static_assert(detail::suits_codebook_codec<Chunker, Rotator, Quantizer>());
  static_assert(detail::suits_metric<Chunker, Feedback, Metric>());

  Chunker chunker{};
  Rotator rotator{};
  Quantizer quantizer{};
  Feedback feedback{};
  Metric metric{};

  //! Gathers with another chunker and quantizer.
  template <class OtherChunker, class OtherQuantizer>
  using with_codes = gathered_codec<OtherChunker, Rotator, OtherQuantizer, Feedback, Metric>;

  //! @brief How chunks on a level are encoded, level 1 being the narrowest width.
  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto at_level() const noexcept
  {
    return detail::codec_on_level<Level>(*this);
  }

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<gathered_codec> plan(layout const& gradient,
                                                            world const& ranks) const
  {
    return tersum::plan<gathered_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0
