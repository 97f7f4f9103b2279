// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The mean magnitude of a chunk as its range. In the published form each rank has its own; here the ranks agree, so that their
//! codes can be added.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>

#include <cstddef>

namespace tersum::inline v0 {

//! @brief The ranks sum the magnitudes of each chunk; the range is the mean magnitude of a coordinate over all ranks, padding
//! included. For `sign_quantizer`. The agreed scalar S is the sum of a chunk's magnitudes by `group::sum`; the bound of the step is S.
struct mean_magnitude_range {
  using scalar                           = float;
  using op                               = native_sum<float>;
  using headroom_type                    = no_headroom;
  static constexpr bool measures_rotated = true;
  constexpr description describe() const { return {"mean_magnitude_range", clip, headroom}; }

  float clip = 1.0f;  //!< The range in units of the mean magnitude.
  no_headroom headroom{};

  template <class Group, std::size_t Size>
  [[nodiscard]] TERSUM_HOST_DEVICE float measure(Group const& g,
                                                 float const (&x)[Size],
                                                 float (&)[Size]) const
  {
    return g.sum(static_cast<int>(Size),
                 [&](int i) { return detail::bits_float(detail::float_bits(x[i]) & 0x7fffffffu); });
  }
  [[nodiscard]] TERSUM_HOST_DEVICE float rank_range(float agreed,
                                                    int world,
                                                    float coordinates) const noexcept
  {
    return agreed / (static_cast<float>(world) * coordinates);
  }
  [[nodiscard]] TERSUM_HOST_DEVICE float bound(float agreed, int, float) const noexcept
  {
    return agreed;
  }
};

static_assert(quantization_range<mean_magnitude_range>,
              "tersum: must model tersum::quantization_range");

}  // namespace tersum::inline v0
