// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs whose payload is decoded, added and encoded again at every hop of the caller's all-reduce.

#pragma once

#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/requantizing_sum.hpp>
#include <tersum/baseline/requantizing_tiles.hpp>
#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/chunk/norm_log.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/chunk_counts.hpp>
#include <tersum/detail/codebook_codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <type_traits>

namespace tersum::inline v0 {

namespace stage {

//! Copies what this rank sends: hops add to the copy, and feedback compares it with what was sent.
struct keep_sent : of_part<exchange_part::encode> {};

}  // namespace stage

namespace detail {

//! @brief What hops do to the payload: `requantizing_sum` to chunks of a codebook, all of one width, otherwise
//! `requantizing_tiles`.
template <class Chunker, class Quantizer>
struct hop_op {
  using type = requantizing_tiles<Quantizer, Chunker::chunk_size>;
};

template <class Chunker, table_codebook Quantizer>
struct hop_op<Chunker, Quantizer> {
  using type = requantizing_sum<Quantizer, Chunker::chunk_size>;
};

template <int Size, int... Widths, class Quantizer>
struct hop_op<allocated_chunks<Size, Widths...>, Quantizer> {
  using type = requantizing_tiles<Quantizer, Size, Widths...>;
};

template <int Size, int... Widths, table_codebook Quantizer>
struct hop_op<allocated_chunks<Size, Widths...>, Quantizer> {
  using type = requantizing_tiles<Quantizer, Size, Widths...>;
};

//! Whether a chunker is `allocated_chunks`, whose widths are part of the type of a tile.
template <class Chunker>
inline constexpr bool is_allocated = false;

template <int Size, int... Widths>
inline constexpr bool is_allocated<allocated_chunks<Size, Widths...>> = true;

//! @brief Tiles, in two places with feedback: what was encoded is needed until the end, and the all-reduce overwrites it.
template <class Codec>
struct hop_counts : chunk_counts<Codec> {
  using chunk_counts<Codec>::chunk_counts;
  using op = typename Codec::payload_op;

  //! Elements of the payload.
  [[nodiscard]] constexpr std::uint64_t tiles() const noexcept
  {
    if constexpr (selects<Codec>) {
      if (!this->travels()) { return 0; }
      return (this->capacity_words() + op::shape::between + tile_words() - 1) / tile_words();
    } else {
      return (this->chunks() + op::element::chunks - 1) / op::element::chunks;
    }
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return tiles() * sizeof(typename op::element);
  }
  //! Whole tiles, and what chunks may leave free of them: see `tile_map`.
  [[nodiscard]] static constexpr double usable_words(double words, world const&) noexcept
  {
    auto const number = static_cast<std::uint64_t>(maximum(words, 0.0) / op::element::words);
    return static_cast<double>(number) * static_cast<double>(tile_words()) - op::shape::between;
  }

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    return section_list{holds<selection_scratch>(section::selection, selects<Codec> ? 1 : 0),
                        holds<std::uint32_t>(section::places, this->places()),
                        holds<typename op::element>(section::payload, tiles()),
                        feeds_back<Codec> ? holds<typename op::element>(section::gathered, tiles())
                                          : in_place_of(section::payload, section::gathered),
                        holds<float>(section::bypass, this->bypassed()),
                        holds<std::byte>(section::agreed, this->agreed_room())};
  }

 private:
  //! Words of an element that chunks of any width can use.
  [[nodiscard]] static constexpr std::uint64_t tile_words() noexcept
  {
    return op::element::room - op::shape::size.lost;
  }
};

}  // namespace detail

//! @brief Chunks are rounded to codes, and the payload's reduction (`requantizing_sum` or `requantizing_tiles`) decodes two of
//! them, adds, and encodes the sum.
//!
//! Use it if an all-reduce that calls a function is all that the transport has: MPI, Gloo, a ring of your own. Where
//! the transport can move parts, `two_shot_codec` has less error at the same traffic.
//!
//! The payload is an array of `hop_block` or `hop_tile`. Every rank's chunk has a scale of its own. With
//! `allocated_chunks` there is a round of norms before, which decides the widths; tiles have one size and say which
//! widths they hold. With a codebook all ranks rotate a chunk by the same signs, so hops add without rotating.
//!
//! Each hop loses a fraction of the partial sum's energy, the codes' distortion, so the error grows with the number of
//! ranks. In a ring, n independent gradients have the error of about (n + 3) / 2 - 1 / n encodings: 3.25 with 4 ranks, 9.4
//! with 16. Two shots always have that of two. What is lost depends on the order of the reduction.
//!
//! Feedback keeps what a rank's own codes lost, not what hops lose.
//! @tparam Chunker    `fixed_chunks<C>` or `allocated_chunks<C, Widths...>` of up to 8 bits, C from 256.
//! @tparam Rotator    `partial_hadamard<C>` for a codebook, `no_rotation` for blocks.
//! @tparam Quantizer  `lloyd_max<q>` or `group_absmax<q, B>`; under `allocated_chunks` any width of it.
//! @tparam Feedback   `no_feedback` or `error_feedback`.
template <chunker Chunker, rotator Rotator, class Quantizer, feedback Feedback = no_feedback>
requires(table_codebook<Quantizer> || group_quantizer<Quantizer>) struct per_hop_codec {
  using chunker_type   = Chunker;
  using rotator_type   = Rotator;
  using quantizer_type = Quantizer;
  using feedback_type  = Feedback;
  using agreement_kind = agreement::norms_if<Chunker>;
  using payload_kind   = payload::hops;
  using dither_type    = typename detail::dither_of<Quantizer>::type;
  using payload_op     = typename detail::hop_op<Chunker, Quantizer>::type;
  using norm_scalar    = bfloat16;
  using agreed_op      = norm_sum<norm_scalar>;
  using rotation       = typename detail::rotation_of<Rotator, Chunker::chunk_size>::type;
  using counts_type    = detail::hop_counts<per_hop_codec>;

  static constexpr bool tiles             = payload_op::tiles;  //!< Their elements have heads.
  static constexpr bool rotates_chunks    = detail::transforms_registers<rotation>;
  static constexpr bool rotates_in_memory = false;
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
                stages_if<Feedback::enabled, stage::keep_sent>,
                rounds::reduce_payload,
                stage::return_bypass,
                stage::decode,
                stage::finish>;

  static_assert(detail::suits_codebook_codec<Chunker, Rotator, Quantizer>());
  static_assert(
    has_packed_rotation<Rotator, chunk_size>,
    "tersum: per_hop_codec is for comparison and takes rotators with a packed form alone");
  static_assert(
    !detail::has_several_bits<Chunker>() || detail::is_allocated<Chunker>,
    "tersum: tiles know the widths of allocated_chunks, not those of a chunker of one's own");
  static_assert(
    [] {
      if constexpr (detail::has_several_bits<Chunker>()) {
        return Chunker::widths[Chunker::level_count - 1] <= 8;
      }
      return true;
    }(),
    "tersum: per_hop_codec has codes of up to 8 bits");

  Chunker chunker{};
  Rotator rotator{};
  Quantizer quantizer{};
  Feedback feedback{};

  //! A per-hop codec of another chunker and quantizer.
  template <class OtherChunker, class OtherQuantizer>
  using with_codes = per_hop_codec<OtherChunker, Rotator, OtherQuantizer, Feedback>;

  //! @brief How chunks on a level are encoded, level 1 being the narrowest width.
  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto at_level() const noexcept
  {
    return detail::codec_on_level<Level>(*this);
  }

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<per_hop_codec> plan(layout const& gradient,
                                                           world const& ranks) const
  {
    return tersum::plan<per_hop_codec>{*this, gradient, ranks};
  }
};

static_assert(reduce_op<requantizing_sum<lloyd_max<4>, 1024>>,
              "tersum: must model tersum::reduce_op");

}  // namespace tersum::inline v0

#include <tersum/baseline/detail/per_hop_codec.ipp>
