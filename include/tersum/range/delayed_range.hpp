// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The step of a chunk from the sum that the last exchange decoded.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/range/sum_report.hpp>
#include <tersum/status.hpp>

#include <cmath>
#include <limits>

namespace tersum::inline v0 {

//! @brief The ranks agree on nothing before they encode: the range of a chunk follows the sum of the last exchange, which all
//! of them have decoded.
//!
//! step = range * clip / Quantizer::max_level, where the range is the root mean square of the chunk's sum as the last exchange
//! shows it. An exchange has one round less than with `rms_range`, and the gradient is read once. A gradient that grows is cut off
//! at the ends of the lanes in the exchange in which it does. How many lanes are there, and what the others hold, tells how large
//! it is, so that the next exchange is wide enough for a gradient up to 1000 times as large. The first exchange is such a one too.
//! A gradient that shrinks gets steps that are too large, which fall from exchange to exchange.
//!
//! It is for `fixed_chunks` of up to 1024 coordinates, `partial_hadamard` or `no_rotation`, `saturating_sum` of 4 or 8 bits, without
//! feedback and without a metric. The state has 16 bytes a chunk more, and the payload a word a chunk, by which all ranks learn
//! that a gradient is not finite.
struct delayed_range {
  //! @brief Stands where other ranges have a head-room: what is followed is the sum itself.
  struct followed_sum {
    static constexpr bool tracked = true;
    [[nodiscard]] TERSUM_HOST_DEVICE constexpr float factor(int, float) const noexcept
    {
      return 1.0f;
    }
  };
  using headroom_type = followed_sum;

  float clip  = 2.1f;      //!< Root mean squares of the sum from zero to the end of the lanes.
  float first = 0x1p-20f;  //!< The range of the first exchange, in units of the summed gradient.
  float least = 0.125f;  //!< No chunk has a range below this part of its tensor's root mean square.
  float hold  = 0.9f;    //!< What a sum shows fluctuates: a range falls by this factor only,
  float above = 2.0f;    //!< unless it is more than so many times as wide as the sum,
  float decay = 0.25f;   //!< and then by this factor at most.
  followed_sum headroom{};

  //! Whether the parameters can be used. `plan::check` passes the answer on.
  [[nodiscard]] constexpr status check() const noexcept
  {
    constexpr float limit = std::numeric_limits<float>::max();
    if (!(first > 0 && first <= limit)) {
      return {error_code::invalid_argument, "the range's first must be finite and above 0"};
    }
    if (!(least >= 0 && least <= 1 && decay > 0 && decay <= hold && hold <= 1 && above >= 1)) {
      return {error_code::invalid_argument,
              "the range's least must be from 0 to 1, above 1 or more, and 0 < decay <= hold <= 1"};
    }
    return {};
  }

  //! @brief The range that the last sum asks for, in its units.
  //!
  //! Normal coordinates are as good as uniform between limits that a quarter of them exceed or more: there, the density of those
  //! inside tells their root mean square, by .8 times the limit over their share. Uniform ones have a third of the square of the
  //! limit. So three times their energy tells the share; counting them would not, because codes of two ranks that both are at
  //! their limits may cancel.
  [[nodiscard]] TERSUM_HOST_DEVICE float next_range(sum_report const& last) const noexcept
  {
    float const shown = last.at_limit >= 0.25f
                          ? 0.8f * last.limit / detail::maximum(3.0f * last.inside, 0x1p-10f)
                          : last.limit * ::sqrtf(last.square);
    float const held  = detail::minimum(last.range * hold, shown * above);
    return detail::maximum(detail::maximum(shown, held), last.range * decay);
  }

  //! @brief The range of a chunk, where `next` is what `next_range` said, and `tensor` the root mean square of that over the tensor.
  [[nodiscard]] TERSUM_HOST_DEVICE float chunk_range(float next, float tensor) const noexcept
  {
    return detail::maximum(next, tensor * least);
  }
};

static_assert(delayed_quantization_range<delayed_range>,
              "tersum: must model tersum::delayed_quantization_range");

}  // namespace tersum::inline v0
