// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! From agreed scalars to the step of a chunk, and from a decoded sum to the head-room of the next exchange.

#pragma once

#include <tersum/chunk/norm_log.hpp>
#include <tersum/codec.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/range/chunk_step.hpp>
#include <tersum/types.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief An agreed scalar from a float that is not negative: what is not finite becomes infinity, which sums and
//! maxima of every transport keep. A magnitude is rounded up, so that nothing clips against its stored form.
template <class Scalar>
[[nodiscard]] TERSUM_INLINE Scalar to_agreed(float value, bool upwards)
{
  float const infinity = bits_float(0x7f800000u);
  float const shown    = value < infinity ? value : infinity;  // NaN becomes infinity too
  if constexpr (std::is_same_v<Scalar, bfloat16>) {
    return upwards ? to_bfloat16_upwards(shown) : to_bfloat16(shown);
  } else {
    return shown;
  }
}

//! @brief The square root of the number of coordinates in a rotation; `tensor_chunks` counts for full_hadamard.
template <class Codec>
[[nodiscard]] TERSUM_INLINE float rotation_root(std::uint64_t tensor_chunks)
{
  if constexpr (Codec::rotates_all) {
    return ::sqrtf(static_cast<float>(tensor_chunks * Codec::chunk_size));
  }
  return ::sqrtf(static_cast<float>(Codec::rotates_chunks ? Codec::chunk_size : 1));
}

//! @brief Root mean squares from zero to the end of the grid; 0 stands for what suits the reducer best at this world.
template <class Codec>
[[nodiscard]] TERSUM_INLINE float clip_of(Codec const& codec, [[maybe_unused]] int world)
{
  if constexpr (requires { Codec::reducer_type::best_clip(world); }) {
    if (codec.range.clip == 0.0f) { return Codec::reducer_type::best_clip(world); }
  }
  return codec.range.clip;
}

//! @brief The step of one chunk, the same on every rank because `measured` is.
//!
//! A chunk whose scalar is not finite, or whose step is beyond 2^100, is poisoned: it decodes to NaN on every rank. One
//! whose step is below 2^-100 has no step and decodes to zeros. Multiplications feed multiplications and divisions only.
//! @param measured       The agreed scalar.
//! @param ratio          The tensor's `tensor_record::ratio`.
//! @param tensor_chunks  Chunks of the tensor.
template <class Codec>
[[nodiscard]] TERSUM_INLINE chunk_step step_of_chunk(
  Codec const& codec, int world, float measured, float ratio, std::uint64_t tensor_chunks)
{
  using range     = typename Codec::range_type;
  using quantizer = typename Codec::quantizer_type;
  // `reach` is the range of one rank before the clip, `bound` what no rotated value of any rank exceeds.
  float reach = measured;
  float bound = measured;
  if constexpr (range::measurement == statistic::chunk_square_norm) {
    reach = ::sqrtf(measured / (static_cast<float>(world) * static_cast<float>(Codec::chunk_size)));
    bound = ::sqrtf(measured);
  } else if constexpr (range::measurement == statistic::tensor_square_norm) {
    reach = ::sqrtf(measured / static_cast<float>(tensor_chunks * Codec::chunk_size));
    bound = ::sqrtf(measured);
  }
  float const room   = codec.range.headroom.factor(world, ratio);
  float const clip   = clip_of(codec, world);
  float const wanted = reach * clip * room / static_cast<float>(quantizer::max_level);
  return chunk_step_of<quantizer>(wanted, bound, rotation_root<Codec>(tensor_chunks), world);
}

//! @brief A squared norm on its way to the wire.
template <class Scalar>
[[nodiscard]] TERSUM_INLINE Scalar to_agreed_norm(float square, [[maybe_unused]] int world)
{
  if constexpr (std::is_same_v<Scalar, norm_log>) {
    return to_norm_log(square, world);
  } else {
    return to_agreed<Scalar>(square, false);
  }
}

//! @brief Whether a chunk's step says that its gradient was not finite.
[[nodiscard]] TERSUM_INLINE bool is_poisoned(chunk_step const& step)
{
  return !is_finite(step.decode);
}

//! @brief The step of a chunk on a level of a codec that selects. Without a level it has no step, but a gradient that is
//! not finite shows.
template <class Codec>
[[nodiscard]] TERSUM_INLINE chunk_step step_on_level(Codec const& codec,
                                                     std::uint32_t level,
                                                     int world,
                                                     float measured,
                                                     float ratio,
                                                     std::uint64_t tensor_chunks)
{
  chunk_step step{};
  if (selects<Codec> && level == 0) {
    step.decode = is_finite(measured) ? 0.0f : bits_float(0x7fffffffu);
  } else {
    at_level(codec, level, [&](auto const& chosen) {
      step = step_of_chunk(chosen, world, measured, ratio, tensor_chunks);
    });
  }
  return step;
}

//! @brief Whether a chunk's energy is not part of what was decoded: it was not finite, or it did not travel.
template <class Codec>
[[nodiscard]] TERSUM_INLINE bool stays_behind(chunk_step const& step)
{
  return is_poisoned(step) || (selects<Codec> && step.decode == 0.0f);
}

//! @brief sqrt(|sum|^2 / energy of one rank), or `before` where there is nothing to measure: no energy, or one that is
//! not finite, of which the sum has only what was decoded.
//!
//! @param of_sum  Sum over the chunks of decode^2 times the squares of the codes.
//! @param energy  Squared norm of one rank: the mean over the ranks when norms were summed, the largest otherwise.
template <class Codec>
[[nodiscard]] TERSUM_INLINE float correlation_ratio(
  double of_sum, double energy, int world, std::uint64_t tensor_chunks, float before)
{
  double const lengths =
    static_cast<double>(world) * static_cast<double>(rotation_root<Codec>(tensor_chunks));
  double const square = of_sum * lengths * lengths / energy;
  return energy > 0 && energy < 0x1p200 && square < 0x1p60 ? ::sqrtf(static_cast<float>(square))
                                                           : before;
}

//! @brief The energy of a sum that one chunk adds: the square of a float is exact in double, the fused product rounds
//! once.
[[nodiscard]] TERSUM_INLINE double add_energy(double sum, chunk_step const& step)
{
  double const square = static_cast<double>(step.decode) * static_cast<double>(step.decode);
  return ::fma(square, static_cast<double>(step.square_sum), sum);
}

}  // namespace tersum::inline v0::detail
