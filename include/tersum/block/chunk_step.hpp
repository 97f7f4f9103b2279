// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The step of a chunk, as the two factors that kernels multiply by.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! @brief The step of one chunk, as encoder and decoder need it, and what the decoder has counted. It lies in the workspace.
struct chunk_step {
  float encode;  //!< 2^fraction_bits / (step sqrt(N)): from unnormalized rotated value to code.
  float
    decode;  //!< step / (sqrt(N) world): from unnormalized sum of codes to mean. NaN when not finite.
  std::uint32_t square_sum;  //!< Sum of the squares of the decoded chunk's codes, when tracked.
  std::uint32_t saturated;   //!< Lanes at a limit, when the reducer saturates.
};
static_assert(sizeof(chunk_step) == 16);

//! @brief The factors that encoders and decoders of a chunk multiply by, made from the distance between neighbouring codes.
//!
//! Every rank must pass the same arguments. If the step is below 2^-100, the chunk is sent as zeros. If the bound is
//! not finite, or the step above 2^100, it decodes to NaN. The products inside go into multiplications and divisions
//! only, so that no compiler can contract them, and CPU and GPU agree.
//! @tparam Rotator    `partial_hadamard<Size>` or `no_rotation`: rotations in kernels are not normalized.
//! @tparam Quantizer  The quantizer of the codes.
//! @param wanted  The distance between neighbouring codes, in units of the gradient.
//! @param bound   What no rotated coordinate of any rank exceeds, the chunk's norm for instance. Rounding would not be
//!                exact with a step below bound * 2^(fraction_bits - 23), so that a smaller one is raised to that.
//! @param world   How many ranks' codes are added: `decode` makes the mean of the sum.
//! @param root    By what the rotator lengthens what it rotates; of one of whole tensors say it.
template <rotator Rotator, quantizer Quantizer>
[[nodiscard]] TERSUM_INLINE chunk_step
make_chunk_step(float wanted,
                float bound,
                int world,
                float root = ::sqrtf(static_cast<float>(detail::square_gain<Rotator>)))
{
  constexpr float unit = static_cast<float>(1 << Quantizer::fraction_bits);
  // Rounding is exact for values up to 2^23 units: see `round_sixteen`. A step is raised where one coordinate could
  // exceed that, which takes a chunk of millions whose energy lies in one coordinate.
  float const step = detail::maximum(wanted, bound * (unit * 0x1p-23f));

  chunk_step out{};
  if (!detail::is_finite(bound) || !(step <= 0x1p100f)) {
    out.decode = detail::bits_float(0x7fffffffu);
  } else if (step >= 0x1p-100f) {
    out.encode = unit / (step * root);
    out.decode = step / root / static_cast<float>(world);
  }
  return out;
}

//! @brief What `dequantize` takes as the step of a chunk whose codes go to `rotate_back`. A rotator's `backward` alone, as
//! kernels call it, multiplies by the chunk's size what `chunk_step::decode` makes of codes; `rotate_back` does not.
template <rotator Rotator>
[[nodiscard]] TERSUM_INLINE float step_of_rotated(chunk_step const& step)
{
  return step.decode * static_cast<float>(detail::square_gain<Rotator>);
}

}  // namespace tersum::inline v0
