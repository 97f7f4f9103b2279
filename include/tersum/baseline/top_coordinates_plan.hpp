// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange of TopK will need.

#pragma once

#include <tersum/baseline/top_coordinates.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief The plan of TopK; members as in the plans of other codecs. Nothing is agreed and nothing bypasses.
template <feedback Feedback>
class plan<top_coordinates_codec<Feedback>> {
 public:
  using codec_type = top_coordinates_codec<Feedback>;

  static constexpr std::size_t alignment = 16;

  constexpr plan(codec_type const& codec, layout const& gradient, world const& ranks)
    : codec_(codec), layout_(gradient), world_(ranks)
  {
    double const pairs =
      static_cast<double>(codec.chunker.bits) * static_cast<double>(coordinates()) / 96;
    if (pairs >= 1) {
      chosen_ = 2 * static_cast<std::uint64_t>(
                      detail::minimum(pairs, static_cast<double>(coordinates() / 2)));
    }
  }

  [[nodiscard]] constexpr codec_type const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return layout_; }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return world_; }

  //! @brief Whether this exchange can be made; if not, the sentence says which argument stands in the way.
  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = detail::check_world(world_); !s.ok()) { return s; }
    if (!layout_.tensors.empty()) {
      return {error_code::unsupported,
              "top_coordinates takes the gradient as one vector: leave layout.tensors empty"};
    }
    if (coordinates() >= std::uint64_t{1} << 29) {
      return {error_code::unsupported, "layout.coordinates exceeds the 2^29 of top_coordinates"};
    }
    return detail::check_budget(codec_.chunker.bits);
  }

  [[nodiscard]] constexpr std::uint64_t coordinates() const noexcept { return layout_.coordinates; }
  [[nodiscard]] constexpr std::uint64_t tensors() const noexcept { return 0; }
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept { return coordinates(); }
  [[nodiscard]] constexpr std::uint64_t compressed() const noexcept { return coordinates(); }
  [[nodiscard]] constexpr std::uint64_t bypassed() const noexcept { return 0; }
  [[nodiscard]] constexpr bool travels() const noexcept { return chosen_ > 0; }

  //! Coordinates that a rank sends, an even number.
  [[nodiscard]] constexpr std::uint64_t chosen() const noexcept { return chosen_; }
  //! What a rank sends: all indices, then all values.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept { return chosen_ * 6; }
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept { return 0; }
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept { return 0; }
  //! The same; all ranks' payloads are gathered.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept { return part_bytes(); }
  [[nodiscard]] constexpr std::uint64_t bypass_bytes() const noexcept { return 0; }
  [[nodiscard]] constexpr std::uint64_t wire_bytes() const noexcept { return payload_bytes(); }
  //! Bits that one rank sends, per coordinate.
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept
  {
    return detail::bits_over(wire_bytes(), coordinates());
  }

  //! Scratch memory: the parts of all ranks, and four bytes per coordinate.
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept
  {
    return payload_offset() + part_bytes() * static_cast<std::uint64_t>(world_.size);
  }
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept
  {
    return residual_offset() + (Feedback::enabled ? coordinates() * sizeof(float) : 0);
  }

  //! @brief What `state_header::layout` holds: of one vector there is nothing to tell but whether there is feedback.
  [[nodiscard]] constexpr std::uint64_t state_fingerprint() const noexcept
  {
    return detail::mix(0, Feedback::enabled ? 2 : 1);
  }

  //! @name Offsets
  //! Where things lie in workspace and state, in bytes.
  //! @{
  [[nodiscard]] constexpr std::size_t rotated_offset() const noexcept { return 0; }
  [[nodiscard]] constexpr std::size_t selection_offset() const noexcept { return 0; }
  [[nodiscard]] constexpr std::size_t places_offset() const noexcept
  {
    return sizeof(detail::selection_scratch);
  }
  [[nodiscard]] constexpr std::size_t payload_offset() const noexcept
  {
    return places_offset() + detail::round_up(coordinates() * 4, 16);
  }
  [[nodiscard]] constexpr std::size_t gathered_offset() const noexcept { return payload_offset(); }
  [[nodiscard]] constexpr std::size_t bypass_offset() const noexcept { return 0; }
  [[nodiscard]] constexpr std::size_t agreed_offset() const noexcept { return 0; }
  [[nodiscard]] constexpr std::size_t records_offset() const noexcept
  {
    return sizeof(state_header);
  }
  [[nodiscard]] constexpr std::size_t table_offset() const noexcept { return sizeof(state_header); }
  [[nodiscard]] constexpr std::size_t residual_offset() const noexcept
  {
    return sizeof(state_header);
  }
  //! @}

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

  template <class Visitor>
  constexpr void for_each_record(Visitor const&) const
  {
  }

 private:
  codec_type codec_;
  layout layout_;
  world world_;
  std::uint64_t chosen_ = 0;
};

}  // namespace tersum::inline v0
