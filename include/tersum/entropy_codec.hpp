// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codec for gradients with many zeros: codes of unlike lengths, in payloads of a size that the plan knows.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/chunk/norm_log.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/chunk_counts.hpp>
#include <tersum/detail/streams.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace tersum::inline v0 {

//! Codes of a rank have unlike lengths, and lie in streams.
template <class Codec>
concept entropy_coding = requires
{
  requires Codec::codes_in_streams;
};

namespace detail {

//! @brief A stream for each rank, which holds all chunks that travel.
template <class Codec>
class entropy_counts : public chunk_counts<Codec> {
 public:
  constexpr entropy_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : chunk_counts<Codec>(codec, gradient, ranks)
  {
    this->fingerprint_ = mix(this->fingerprint_, 7);
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (!(this->codec_.bits > 0 && this->codec_.bits <= 64)) {
      return {error_code::invalid_argument, "entropy_codec.bits must be above 0 and at most 64"};
    }
    if (status const s = chunk_counts<Codec>::check(); !s.ok()) { return s; }
    if (this->chunks() > stream_search::counters * std::uint64_t{stream_search::a_counter} ||
        part_bytes() > std::numeric_limits<std::uint32_t>::max() / 8) {
      return {error_code::invalid_argument,
              "layout.coordinates is too large for entropy_codec, which takes 2^31 coordinates and "
              "messages of up to 2^29 bytes: exchange it in parts"};
    }
    return {};
  }

  //! Bytes that a rank sends to all others, a multiple of 16. Whatever the bits, they hold steps, lengths, and a chunk with codes from -1 to 1:
  //! so something is sent of every gradient, and feedback drains.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept
  {
    if (this->chunks() == 0) { return 0; }
    double const ranks = static_cast<double>(maximum(this->ranks().size, 1));
    double const bits  = this->codec_.bits > 0 && this->codec_.bits <= 64 ? this->codec_.bits : 0;
    double const bytes = bits * 2 / ranks * static_cast<double>(this->compressed()) / 8;
    std::uint64_t const least =
      4 * std::uint64_t{stream_set::head_of(this->chunks())} + (3 * Codec::chunk_size + 16) / 8;
    return round_up(maximum(static_cast<std::uint64_t>(bytes), least), this->alignment);
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept { return part_bytes(); }

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    auto const ranks          = static_cast<std::uint64_t>(maximum(this->ranks().size, 1));
    std::uint64_t const slots = streams().slots;
    return section_list{
      holds<float>(section::stream_values, slots * Codec::chunk_size, 16),
      holds<std::uint32_t>(section::stream_bits, slots * ranks, 16),
      holds<stream_search>(section::stream_searches, 1, 16),
      holds<std::uint32_t>(section::gathered, ranks * part_bytes() / sizeof(std::uint32_t), 16),
      in_place_of(section::gathered, section::payload),
      holds<float>(section::bypass, this->bypassed())};
  }

  //! @name For stages
  //! @{
  //! What all ranks decode.
  [[nodiscard]] constexpr stream_set streams() const noexcept
  {
    return {.words   = part_bytes() / sizeof(std::uint32_t),
            .head    = stream_set::head_of(this->chunks()),
            .chunks  = static_cast<std::uint32_t>(this->chunks()),
            .streams = 1,
            .copies  = static_cast<std::uint32_t>(maximum(this->ranks().size, 1)),
            .slots   = static_cast<std::uint32_t>(round_up(this->chunks(), 32))};
  }
  [[nodiscard]] stream_memory memory_of_streams(std::uint32_t* gathered) const noexcept
  {
    auto const sections = workspace_sections();
    std::byte* const memory =
      reinterpret_cast<std::byte*>(gathered) - sections.offset(section::gathered);
    return {.values = reinterpret_cast<float*>(memory + sections.offset(section::stream_values)),
            .bits =
              reinterpret_cast<std::uint32_t*>(memory + sections.offset(section::stream_bits)),
            .searches =
              reinterpret_cast<stream_search*>(memory + sections.offset(section::stream_searches))};
  }
  //! @}
};

}  // namespace detail

//! @brief Every rank rounds its gradient to multiples of one step and sends the codes in as few bits as they need; all ranks gather,
//! decode and add them.
//!
//! Use it for gradients with many exact zeros, or where most coordinates are small beside a few. Zeros cost next to nothing, and large
//! coordinates get long codes. Each rank takes the finest step whose codes fit into its message, for as many chunks as have room the next finer
//! one, and fills the rest with zeros: the size of messages is fixed by the plan, and the ranks need not agree on anything. It is the codec of `entropy_gather` without its
//! adaptive coder: chunks are coded apart, in Golomb codes (`rice_orders`), so that threads of a GPU can do it.
//!
//! It has one round, an all-gather. The mean is added in float, in the order of the ranks, by every rank alike, so all end with the
//! same bits. Rounding is to the nearest, but for a dead zone of .6 of a step around zero, and so is biased. Magnitudes below 2^-126 are zero.
//!
//! Feedback keeps what a rank's own codes lost.
//! @tparam Feedback  `no_feedback` or `error_feedback`.
//! @tparam Size      Coordinates of a chunk: a power of two from 128 to 1024.
template <feedback Feedback = no_feedback, int Size = 512>
struct entropy_codec {
  using chunker_type   = fixed_chunks<Size>;
  using feedback_type  = Feedback;
  using agreement_kind = agreement::none;
  using payload_kind   = payload::copies;
  using norm_scalar    = float;
  using agreed_op      = norm_sum<norm_scalar>;
  using counts_type    = detail::entropy_counts<entropy_codec>;

  static constexpr bool codes_in_streams = true;
  static constexpr bool rotates_all      = false;
  static constexpr int chunk_size        = Size;

  //! The order of an exchange.
  using stages = stage_list<stage::open,
                            stage::gather_bypass,
                            rounds::sum_bypass,
                            stage::encode,
                            rounds::gather_parts,
                            stage::return_bypass,
                            stage::decode,
                            stage::finish>;

  static_assert(Size <= 1024, "tersum: entropy_codec takes chunks of up to 1024 coordinates");
  static_assert(!has_one_step<Feedback> && !has_owners_only<Feedback>,
                "tersum: entropy_codec takes feedback that ranks keep from step to step");

  //! Bits per coordinate, above 0 and at most 64, of a ring all-reduce with the traffic of this exchange, step and positions included:
  //! a message has `bits` * 2 / ranks for each coordinate.
  float bits = 2;
  Feedback feedback{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<entropy_codec> plan(layout const& gradient,
                                                           world const& ranks) const
  {
    return tersum::plan<entropy_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0
