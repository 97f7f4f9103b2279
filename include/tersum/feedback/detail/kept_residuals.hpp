// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a state keeps for feedback, and what kernels are given of it.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/state.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! What kernels are given of feedback besides the residual: nothing.
struct steady_feedback {
  constexpr void take_gain(section_list& state, std::uint64_t) noexcept
  {
    state.take<float>("gain", 0);
  }
  TERSUM_INLINE void first_gain() const {}
  //! By what is multiplied what was kept.
  template <class Feedback>
  [[nodiscard]] TERSUM_INLINE float weight(Feedback const&, state_header const*) const
  {
    return 1.0f;
  }
};

//! The same of a codec whose residual moves with its codes.
struct counted_feedback : steady_feedback {
  std::uint64_t count;  // of bypassed values

  constexpr void take_gain(section_list& state, std::uint64_t bypassed) noexcept
  {
    count = bypassed;
    steady_feedback::take_gain(state, bypassed);
  }
};

//! The same if the weight of the residual depends on the step.
struct weighed_feedback {
  std::uint64_t count;  // as above, or unused
  float* gain;          // four times the same, so that what follows is aligned

  constexpr void take_gain(section_list& state, std::uint64_t bypassed) noexcept
  {
    count = bypassed;
    gain  = state.take<float>("gain", 4);
  }
  TERSUM_INLINE void first_gain() const
  {
    for (int i = 0; i < 4; ++i) { gain[i] = 1.0f; }
  }
  template <class Feedback>
  [[nodiscard]] TERSUM_INLINE float weight(Feedback const& feedback,
                                           state_header const* header) const
  {
    return feedback.kept_weight(header->step, *gain);
  }
};

//! @brief What kernels of a codec are given of its feedback besides the residual.
template <class Codec>
using feedback_args = std::conditional_t<
  weighs_kept<Codec>,
  weighed_feedback,
  std::conditional_t<moves_with_codes<Codec>, counted_feedback, steady_feedback>>;

//! @brief A residual for each of so many coordinates, or null where none is kept.
template <class Codec>
[[nodiscard]] constexpr residual_element<Codec>* take_residual(section_list& state,
                                                               section name,
                                                               bool kept,
                                                               std::uint64_t coordinates) noexcept
{
  auto* const residual = state.keep<residual_element<Codec>>(name, kept ? coordinates : 0);
  return kept ? residual : nullptr;
}

}  // namespace tersum::inline v0::detail
