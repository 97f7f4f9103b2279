// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs whose payload is not summed by the transport: the owner of each part decodes, adds, and encodes once more.

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
#include <tersum/quantize/ways.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

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
    if constexpr (!ways_differ<Codec>) { return part_bytes(); }
    if constexpr (allots_both_ways<Codec>) {
      // Dealt widest first, too.
      std::uint64_t const most = this->mean_capacity_words() + mean_chunk_words() * (size() - 1);
      return round_up((this->travels() ? of_a_rank(most) : 0) * sizeof(std::uint32_t),
                      this->alignment);
    }
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
    return keeps_blocks<Codec> ? owned_chunks() : owned_chunks() * Codec::chunk_size;
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
    if constexpr (!ways_differ<Codec>) { return chunk_words(); }
    if constexpr (allots_both_ways<Codec>) {
      return mean_level_words<Codec>(Codec::chunker_type::level_count);
    }
    return code_words<typename Codec::mean_quantizer_type>(Codec::chunk_size);
  }
  //! What parts of equal size may leave free: see `part_bytes`.
  [[nodiscard]] static constexpr double usable_words(double words, world const& ranks) noexcept
  {
    return words - free_words(chunk_words(), ranks);
  }
  //! The same of the mean.
  [[nodiscard]] static constexpr double usable_mean_words(double words, world const& ranks) noexcept
  {
    return words - free_words(mean_chunk_words(), ranks);
  }

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    std::uint64_t const words = payload_bytes() / sizeof(std::uint32_t);
    using selection_type =
      std::conditional_t<allots_both_ways<Codec>, two_way_scratch, selection_scratch>;
    return section_list{holds<selection_type>(section::selection, selects<Codec> ? 1 : 0),
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

}  // namespace detail

//! @brief Chunks are rotated and rounded to a codebook; each rank owns a part of them, whose mean it computes.
//!
//! Use it if the transport can move bytes, and above all with many ranks. It has these rounds: the sum of norms, if the
//! chunker asks for them; an all-to-all, in which rank r gets all ranks' codes of part r, adds them in float in the
//! order of the ranks, and encodes the mean; an all-gather of the parts. The owner decodes its own *encoded* part like
//! all others do, so all ranks end with the same bits. The traffic is that of a ring all-reduce of the payload. The
//! error is that of two encodings, whatever the number of ranks.
//!
//! Every rank's chunk has a scale of its own, which travels with its codes. With a codebook all ranks rotate a chunk by
//! the same signs, so the owner adds and encodes without rotating. That has less error than another basis for the
//! second encoding, but the second encoding sees sums of few levels: with two ranks, or with 2 bits and less, it weighs
//! the ranks a little unevenly, although each encoding by itself is unbiased.
//!
//! With `ways` the codes of the mean have another width than those that the owners are sent. The traffic is then that of a ring
//! all-reduce of the mean of both. Under `allocated_chunks` those of the mean are wider, by as many bits in every chunk that travels.
//!
//! Feedback keeps what a rank's own codes lost; under `fixed_chunks`, where the owner of a chunk does not change, the
//! owner also keeps what its second encoding lost, if the feedback adds what was lost as it is (`adds_lost`); `kept_by_ranks` and
//! `kept_by_owners` leave out one of the two. Under `sent_values`
//! it takes that loss from what it has sent itself.
//! @tparam Chunker    `fixed_chunks<C>` or `allocated_chunks<C, Widths...>` of up to 16 bits, C from 256.
//! @tparam Rotator    `partial_hadamard<C>` for a codebook, `no_rotation` for blocks and casts.
//! @tparam Quantizer  `lloyd_max<q>`, `group_absmax<q, B>` or `cast<T>`; under `allocated_chunks` any width of it. Under
//!                    `fixed_chunks` also `ways<Up, Down>`, and under `allocated_chunks` if `Down` is wider.
//! @tparam Feedback   `no_feedback` or `error_feedback`.
//! @tparam Metric     `plain_metric`, `given_diagonal`, `kept_diagonal` or `kept_factors`.
template <chunker Chunker,
          rotator Rotator,
          class Quantizer,
          feedback Feedback = no_feedback,
          metric Metric     = plain_metric>
requires(part_quantizer<Quantizer> || detail::are_ways<Quantizer>) struct two_shot_codec {
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using quantizer_type = typename detail::ways_of<Quantizer>::up;
  //! In whose codes owners send the mean.
  using mean_quantizer_type = typename detail::ways_of<Quantizer>::down;
  using feedback_type       = Feedback;
  using metric_type         = Metric;
  using agreement_kind      = agreement::norms_if<Chunker>;
  using payload_kind        = payload::parts;
  using dither_type         = typename detail::dither_of<quantizer_type>::type;
  using norm_scalar         = bfloat16;
  using agreed_op           = norm_sum<norm_scalar>;
  using rotation            = typename detail::rotation_of<Rotator, Chunker::chunk_size>::type;
  using counts_type         = detail::two_shot_counts<two_shot_codec>;

  static constexpr bool rotates_chunks    = detail::transforms_registers<rotation>;
  static constexpr bool rotates_in_memory = !has_packed_rotation<Rotator, Chunker::chunk_size>;
  static constexpr bool rotates_all       = false;
  static constexpr int chunk_size         = Chunker::chunk_size;

  //! The order of an exchange.
  using stages =
    join_stages<stage::open,
                stages_if<has_factored<Metric>, stage::spread>,
                stage::gather_bypass,
                stages_if<detail::chooses_by_norm<Chunker>(), stage::measure, rounds::agree>,
                rounds::sum_bypass,
                stages_if<detail::chooses_by_norm<Chunker>(), stage::select, stage::derive_steps>,
                stage::encode,
                rounds::scatter_parts,
                stage::recompress,
                rounds::gather_parts,
                stage::return_bypass,
                stage::decode,
                stages_if<has_factored<Metric>, stage::follow>,
                stage::finish>;

  static_assert(detail::suits_codebook_codec<Chunker, Rotator, quantizer_type>());
  static_assert(detail::suits_codebook_codec<Chunker, Rotator, mean_quantizer_type>());
  static_assert(detail::suits_ways<Chunker, quantizer_type, mean_quantizer_type>());
  static_assert(detail::suits_metric<Chunker, Feedback, Metric>());

  Chunker chunker{};
  Rotator rotator{};
  Quantizer quantizer{};
  Feedback feedback{};
  Metric metric{};

  //! Two shots of another chunker and quantizer.
  template <class OtherChunker, class OtherQuantizer>
  using with_codes = two_shot_codec<OtherChunker, Rotator, OtherQuantizer, Feedback, Metric>;

  //! @brief How chunks on a level are encoded, level 1 being the narrowest width.
  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto at_level() const noexcept
  {
    return detail::codec_on_level<Level>(*this);
  }

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<two_shot_codec> plan(layout const& gradient,
                                                            world const& ranks) const
  {
    return tersum::plan<two_shot_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0
