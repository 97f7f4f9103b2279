// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranges of older codecs: by the mean magnitude of a chunk, by its norm, and by the norm of its tensor. In the published forms each rank has its own;
//! here the ranks agree, so that their codes can be added.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/square_norm.hpp>
#include <tersum/reduce/native.hpp>

#include <cmath>
#include <cstddef>

namespace tersum::inline v0 {

//! @brief The ranks sum the magnitudes of each chunk; the range is the mean magnitude of a coordinate over all ranks, padding
//! included. For `sign_quantizer`.
struct mean_magnitude_range {
  using scalar                           = float;
  using op                               = native_sum<float>;
  using headroom_type                    = no_headroom;
  static constexpr bool measures_rotated = true;

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
  //! The range of one rank, in units of the gradient.
  [[nodiscard]] TERSUM_HOST_DEVICE float rank_range(float agreed,
                                                    int world,
                                                    float coordinates) const noexcept
  {
    return agreed / (static_cast<float>(world) * coordinates);
  }
  //! What no value of any rank exceeds.
  [[nodiscard]] TERSUM_HOST_DEVICE float bound(float agreed, int, float) const noexcept
  {
    return agreed;
  }
};

static_assert(quantization_range<mean_magnitude_range>,
              "tersum: must model tersum::quantization_range");

//! @brief The ranks take the maximum of the squared norm of each chunk; the range is that norm, which no coordinate exceeds.
//!
//! With `stochastic_quantizer` of codes up to L a coordinate is rounded to j |x|_2 / L, j up to L: QSGD with buckets of a chunk. Most
//! coordinates are far below the norm, so a chunk of C needs some sqrt(C) levels: buckets by their largest magnitude, such as
//! those of `group_absmax` with `linear_levels`, have less error. Source: Alistarh et al., QSGD (NIPS'17), section 3.1; the shared
//! norm is that of Xin et al., Global-QSGD (2023).
struct norm_range {
  using scalar                           = float;
  using op                               = native_max<float>;
  using headroom_type                    = no_headroom;
  static constexpr bool measures_rotated = false;
  static constexpr bool is_square_norm =
    true;  //!< What `measure` returns is `square_norm`, which vectors compute.

  float clip = 1.0f;  //!< The range in units of the norm.
  no_headroom headroom{};

  template <class Group, std::size_t Size>
  [[nodiscard]] TERSUM_HOST_DEVICE float measure(Group const& g,
                                                 float const (&x)[Size],
                                                 float (&scratch)[Size]) const
  {
    return square_norm(g, x, scratch);
  }
  //! The range of one rank, in units of the gradient.
  [[nodiscard]] TERSUM_HOST_DEVICE float rank_range(float agreed, int, float) const noexcept
  {
    return ::sqrtf(agreed);
  }
  //! What no value of any rank exceeds.
  [[nodiscard]] TERSUM_HOST_DEVICE float bound(float agreed, int, float) const noexcept
  {
    return ::sqrtf(agreed);
  }
};

static_assert(quantization_range<norm_range>, "tersum: must model tersum::quantization_range");

//! @brief The ranks take the maximum of the squared norm of each tensor; the range is that norm. One scalar per tensor travels.
//!
//! As `norm_range` with a bucket of a whole tensor. A tensor of d coordinates needs some sqrt(d) levels for a variance of its
//! energy; with fewer, rounding adds up to sqrt(d) / L times the energy. Source: Alistarh et al., QSGD (NIPS'17), section 3.1; the linear
//! dithering of Zhong et al., BytePS-Compress and CLAN (2021), with its norm.
struct tensor_norm_range {
  using scalar                           = float;
  using op                               = native_max<float>;
  using headroom_type                    = no_headroom;
  static constexpr statistic measurement = statistic::tensor_square_norm;
  static constexpr bool measures_rotated = false;

  float clip = 1.0f;  //!< The range in units of the norm.
  no_headroom headroom{};

  template <class Group, std::size_t Size>
  [[nodiscard]] TERSUM_HOST_DEVICE float measure(Group const& g,
                                                 float const (&x)[Size],
                                                 float (&scratch)[Size]) const
  {
    return square_norm(g, x, scratch);  // of a chunk: the library adds those of a tensor
  }
  //! The range of one rank, in units of the gradient.
  [[nodiscard]] TERSUM_HOST_DEVICE float rank_range(float agreed, int, float) const noexcept
  {
    return ::sqrtf(agreed);
  }
  //! What no value of any rank exceeds.
  [[nodiscard]] TERSUM_HOST_DEVICE float bound(float agreed, int, float) const noexcept
  {
    return ::sqrtf(agreed);
  }
};

static_assert(quantization_range<tensor_norm_range>,
              "tersum: must model tersum::quantization_range");

}  // namespace tersum::inline v0
