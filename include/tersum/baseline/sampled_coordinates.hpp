// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every rank sends its largest coordinates, above a threshold that a sample of them tells: the choice of DGC.

#pragma once

#include <tersum/baseline/top_coordinates.hpp>
#include <tersum/chunk/chunk_key.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief K coordinates as of `top_coordinates`, chosen by a threshold from a sample of one coordinate in `stride`.
//!
//! The threshold is that magnitude of the sample which as large a share of the sample reaches as K is of all coordinates. Of those
//! that reach it the K largest travel, so that there is no difference from `top_coordinates` where K or more do. Where fewer do, all
//! of them travel, and the places that are left go to coordinates below the threshold, which take turns: the number of bytes stays
//! that of the plan. Each `stride` neighbours are sampled once, at a place that is drawn anew in each exchange, the same on all ranks.
//!
//! Source: Lin et al., Deep Gradient Compression (ICLR'18), section 3.1 and appendix D, which samples .1 to 1 % and chooses once more
//! among those above where they are too many.
struct sampled_coordinates : top_coordinates {
  std::uint32_t stride =
    100;  //!< Of so many neighbours one is sampled; with 1 the choice is that of `top_coordinates`.

  //! @brief How many of `coordinates` are sampled.
  [[nodiscard]] constexpr std::uint64_t sample_size(std::uint64_t coordinates) const noexcept
  {
    std::uint64_t const each = detail::maximum(stride, 1u);
    return (coordinates + each - 1) / each;
  }

  //! @brief How many of the sample reach the threshold, if no two are equal: at least one, as `chosen` is of `coordinates`.
  [[nodiscard]] constexpr std::uint32_t sample_rank(std::uint64_t chosen,
                                                    std::uint64_t coordinates) const noexcept
  {
    std::uint64_t const all  = detail::maximum<std::uint64_t>(coordinates, 1);
    std::uint64_t const rank = (chosen * sample_size(coordinates) + all - 1) / all;
    return static_cast<std::uint32_t>(detail::maximum<std::uint64_t>(rank, 1));
  }

  //! @brief The coordinate that stands for the neighbours j `stride` .. (j + 1) `stride` - 1.
  //! @param key  Of the signs of the step of training.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t sampled(std::uint64_t j,
                                                                   std::uint64_t coordinates,
                                                                   std::uint64_t key) const noexcept
  {
    std::uint64_t const begin = j * stride;
    std::uint64_t const width =
      coordinates - begin < stride ? coordinates - begin : std::uint64_t{stride};
    return begin + (sign_bits(j, key) * width >> 32);
  }
};

static_assert(selecting_chunker<sampled_coordinates>,
              "tersum: must model tersum::selecting_chunker");

namespace detail {

//! Coordinates are chosen by a threshold from a sample of them.
template <class Codec>
concept sampling = gathering<Codec> && requires(Codec const& codec)
{
  codec.chunker.sample_size(std::uint64_t{});
};

//! @brief Those of TopK, and memory for the selection from the sample.
template <class Codec>
class sampled_counts : public pair_counts<Codec> {
 public:
  using pair_counts<Codec>::pair_counts;

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (this->codec_.chunker.stride == 0) {
      return {error_code::invalid_argument, "the chunker's stride must be at least 1"};
    }
    return pair_counts<Codec>::check();
  }

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    auto const ranks = static_cast<std::uint64_t>(this->ranks().size);
    return section_list{holds<selection_scratch>(section::selection, 2),
                        holds<std::uint32_t>(section::places, round_up(this->coordinates(), 4)),
                        holds<std::byte>(section::gathered, this->part_bytes() * ranks),
                        in_place_of(section::gathered, section::payload)};
  }
};

}  // namespace detail

//! @brief TopK by a threshold from a sample. The rounds, the parts and the state are those of `top_coordinates_codec`.
//!
//! The CPU lists the coordinates above the threshold in one pass, and saves most of the time of an exact choice. Kernels read every
//! magnitude three times, as for an exact choice, and the sample besides.
//! @tparam Feedback  As of `top_coordinates_codec`.
template <feedback Feedback = no_feedback>
struct sampled_coordinates_codec {
  using chunker_type   = sampled_coordinates;
  using feedback_type  = Feedback;
  using norm_scalar    = float;
  using agreement_kind = agreement::none;
  using payload_kind   = payload::coordinates;
  using counts_type    = detail::sampled_counts<sampled_coordinates_codec>;

  static constexpr bool rotates_all = false;
  static constexpr int chunk_size   = 1;

  //! The order of an exchange.
  using stages =
    stage_list<stage::open, stage::encode, rounds::gather_parts, stage::decode, stage::finish>;

  sampled_coordinates chunker{};
  Feedback feedback{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<sampled_coordinates_codec> plan(layout const& gradient,
                                                                       world const& ranks) const
  {
    return tersum::plan<sampled_coordinates_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0

#include <tersum/baseline/detail/sampled_coordinates.ipp>
