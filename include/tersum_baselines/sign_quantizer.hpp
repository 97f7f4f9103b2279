// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Signs: codes 1 and -1, whose size the ranks agree on.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/quantize/dither.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief The sign of a coordinate and nothing of its size; zero, and what is below 2^-20 steps, stays zero.
//!
//! With `mean_magnitude_range` the estimate of a rank's chunk x is |x|_1 / C sign(x), with the mean of the ranks' means as its size:
//! the scaled signs of the sources, but that each rank has a size of its own there. It is far from unbiased and needs feedback;
//! no larger range than that may then be used, or residuals grow. Source: Karimireddy et al., Error Feedback Fixes SignSGD (ICML'19);
//! onebit in BytePS-Compress (Zhong et al., 2021).
struct sign_quantizer {
  using dither                       = independent;  //!< Without use: a sign is no nearest code.
  static constexpr int bits          = 2;            //!< Width of a code.
  static constexpr int max_level     = 1;            //!< Codes lie in +-max_level.
  static constexpr int fraction_bits = 0;
  static constexpr bool unbiased     = false;
  constexpr description describe() const { return {"sign_quantizer"}; }

  //! @brief The code of one value; `scale` is one over the step.
  [[nodiscard]] TERSUM_HOST_DEVICE std::int32_t encode(float value,
                                                       float scale,
                                                       std::uint32_t) const noexcept
  {
    float const position = value * scale;
    return (position > 0x1p-20f ? 1 : 0) - (position < -0x1p-20f ? 1 : 0);
  }
};

static_assert(quantizer<sign_quantizer>, "tersum: must model tersum::quantizer");

}  // namespace tersum::inline v0
