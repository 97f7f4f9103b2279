// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans of codecs have in common whose chunks are single coordinates.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Each coordinate of one vector is a chunk. Nothing bypasses, and nothing is agreed on.
template <class Codec>
class coordinate_counts : public plan_counts<Codec> {
 public:
  constexpr coordinate_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : plan_counts<Codec>(codec, gradient, ranks)
  {
    this->chunks_     = gradient.coordinates;
    this->compressed_ = gradient.coordinates;
  }

  //! Whether world and layout are such, and the gradient is one vector below so many coordinates.
  [[nodiscard]] constexpr status check_vector(std::uint64_t limit) const noexcept
  {
    if (status const s = check_world(this->world_); !s.ok()) { return s; }
    if (!this->layout_.tensors.empty()) {
      return {error_code::unsupported,
              "the codec takes the gradient as one vector: leave layout.tensors empty"};
    }
    if (this->coordinates() >= limit) {
      return {error_code::unsupported, "layout.coordinates is above what the codec can count"};
    }
    return check_layout(this->layout_);
  }
  constexpr void take_state(section_list& state, auto& args) const noexcept
  {
    args.header  = state.take<state_header>("header", 1);
    args.records = state.take<tensor_record>("records", this->tensors());
    args.bypassed.take_gain(state, 0);
    args.residual = take_residual<Codec>(state, "residual", feeds_back<Codec>, this->coordinates());
  }
};

}  // namespace tersum::inline v0::detail
