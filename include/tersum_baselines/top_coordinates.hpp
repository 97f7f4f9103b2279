// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every rank sends its own largest coordinates: TopK, the baseline of chunked selection.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum_baselines/detail/coordinate_counts.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief The K coordinates of largest magnitude, K as large as `bits` pays for: 2 floor(bits d / 96), at most 2 floor(d / 2) of d. If that is 0, the mean is zeros.
//!
//! Coordinates of equal magnitude take turns; a value that is not finite counts as infinite.
struct top_coordinates {
  static constexpr int chunk_size    = 1;
  static constexpr bool by_norm      = true;
  static constexpr int level_count   = 1;
  static constexpr bool several_bits = false;
  constexpr description describe() const { return {"top_coordinates", bits}; }

  float bits = 2;  //!< Bits per coordinate that a rank sends, up to 32: never exceeded.

  //! @brief What is compared: the magnitude.
  [[nodiscard]] TERSUM_HOST_DEVICE std::uint32_t score(std::uint32_t magnitude,
                                                       chunk_key const&) const noexcept
  {
    return magnitude;
  }
};

static_assert(selecting_chunker<top_coordinates>, "tersum: must model tersum::selecting_chunker");

namespace detail {

//! @brief Pairs of an index and a half, gathered from all ranks.
template <class Codec>
class pair_counts : public coordinate_counts<Codec> {
 public:
  using selection_type = selection_args;

  constexpr pair_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : coordinate_counts<Codec>(codec, gradient, ranks)
  {
    std::uint64_t const d = gradient.coordinates;
    double const pairs    = static_cast<double>(codec.chunker.bits) * static_cast<double>(d) / 96;
    if (pairs >= 1) {
      chosen_ = 2 * static_cast<std::uint64_t>(minimum(pairs, static_cast<double>(d / 3)));
    }
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    status const s = this->check_vector(std::uint64_t{1} << 29);
    if (!s.ok()) { return s; }
    return check_budget(this->codec_.chunker.bits);
  }

  //! Coordinates that a rank sends, an even number.
  [[nodiscard]] constexpr std::uint64_t chosen() const noexcept { return chosen_; }
  //! What a rank sends: all indices of 32 bits, ascending, then all values as halves.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept { return chosen_ * 6; }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept { return part_bytes(); }
  [[nodiscard]] constexpr bool travels() const noexcept { return chosen_ > 0; }

  constexpr void take_workspace(section_list& work, auto& args) const noexcept
  {
    auto const ranks       = static_cast<std::uint64_t>(this->ranks().size);
    args.selection.rule    = selection_rule();
    args.selection.scratch = work.take<selection_scratch>("selection", 1);
    args.selection.places  = work.take<std::uint32_t>("places", this->coordinates());
    args.payload           = work.take_bytes<std::uint32_t>("gathered", part_bytes() * ranks);
    work.share("gathered", "payload");
  }

  [[nodiscard]] constexpr detail::selection_rule selection_rule() const noexcept
  {
    detail::selection_rule rule{};
    rule.steps    = 1;
    rule.level[0] = 1;
    rule.cost[0]  = 1;
    rule.exponent = 65536;
    rule.capacity = static_cast<std::uint32_t>(chosen_);
    return rule;
  }

 private:
  std::uint64_t chosen_ = 0;
};

}  // namespace detail

//! @brief TopK: its one round gathers the ranks' own indices (32 bits) and values (half), and every rank adds them up.
//!
//! It is for comparison, as in the literature. An all-reduce cannot carry it, and its traffic grows with the number of
//! ranks. The gradient is one vector: tensors do not bypass. Values that are not finite travel and are reported on every
//! rank; feedback does not keep them, but keeps all others, and sends halves from 2^20 on as NaN, smaller ones clamped to +-65504. Source: Aji and Heafield (EMNLP'17); compared in Han et al.
//! (HotNets'24), tables 2 and 3.
//! @tparam Feedback  `no_feedback` or `error_feedback`.
template <feedback Feedback = no_feedback>
struct top_coordinates_codec {
  using chunker_type   = top_coordinates;
  using feedback_type  = Feedback;
  using metric_type    = plain_metric;
  using agreement_kind = agreement::none;
  using payload_kind   = payload::coordinates;
  using counts_type    = detail::pair_counts<top_coordinates_codec>;
  constexpr description describe() const { return {"top_coordinates_codec", chunker, feedback}; }

  static constexpr bool rotates_all = false;
  static constexpr int chunk_size   = 1;

  //! The order of an exchange.
  using stages =
    stage_list<stage::open, stage::encode, rounds::gather_parts, stage::decode, stage::finish>;

  top_coordinates chunker{};
  Feedback feedback{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<top_coordinates_codec> plan(layout const& gradient,
                                                                   world const& ranks) const
  {
    return tersum::plan<top_coordinates_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0

#include <tersum_baselines/detail/top_coordinates.ipp>
