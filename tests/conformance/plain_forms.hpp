// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies of the library without what is optional: their plain forms alone, under their names, as their bytes are the same.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/random/philox.hpp>

#include <cstdint>

namespace tersum::tests {

template <rotator Rotator>
struct plain_rotator {
  static constexpr int rotation_size = Rotator::rotation_size;
  static constexpr int square_gain   = detail::square_gain<Rotator>;
  constexpr description describe() const { return Rotator{}.describe(); }

  template <class Group, int Size>
  TERSUM_HOST_DEVICE void forward(Group const& g,
                                  float (&x)[Size],
                                  float (&scratch)[Size],
                                  rotation_key const& key) const
  {
    Rotator{}.forward(g, x, scratch, key);
  }

  template <class Group, int Size>
  TERSUM_HOST_DEVICE void backward(Group const& g,
                                   float (&x)[Size],
                                   float (&scratch)[Size],
                                   rotation_key const& key) const
  {
    Rotator{}.backward(g, x, scratch, key);
  }
};

template <quantization_range Range>
struct plain_range {
  using scalar                           = typename Range::scalar;
  using op                               = typename Range::op;
  using headroom_type                    = typename Range::headroom_type;
  static constexpr bool measures_rotated = Range::measures_rotated;
  constexpr description describe() const { return Range{clip, headroom}.describe(); }

  float clip             = Range{}.clip;
  headroom_type headroom = {};

  template <class Group, int Size>
  TERSUM_HOST_DEVICE float measure(Group const& g,
                                   float const (&x)[Size],
                                   float (&scratch)[Size]) const
  {
    return Range{}.measure(g, x, scratch);
  }
  TERSUM_HOST_DEVICE float rank_range(float agreed, int world, float coordinates) const
  {
    return Range{}.rank_range(agreed, world, coordinates);
  }
  TERSUM_HOST_DEVICE float bound(float agreed, int world, float coordinates) const
  {
    return Range{}.bound(agreed, world, coordinates);
  }
};

template <quantizer Quantizer>
struct plain_quantizer {
  using dither                       = typename Quantizer::dither;
  static constexpr int bits          = Quantizer::bits;
  static constexpr int max_level     = Quantizer::max_level;
  static constexpr int fraction_bits = Quantizer::fraction_bits;
  static constexpr bool unbiased     = Quantizer::unbiased;
  constexpr description describe() const { return Quantizer{}.describe(); }

  TERSUM_HOST_DEVICE std::int32_t encode(float value, float scale, std::uint32_t random) const
  {
    return Quantizer{}.encode(value, scale, random);
  }
};

template <codebook Codebook>
requires(has_levels_of<Codebook>) struct plain_codebook {
  static constexpr int bits      = Codebook::bits;
  static constexpr bool unbiased = Codebook::unbiased;
  constexpr description describe() const { return Codebook{}.describe(); }

  TERSUM_HOST_DEVICE std::uint32_t encode(float value) const { return Codebook{}.encode(value); }
  TERSUM_HOST_DEVICE float decode(std::uint32_t code) const { return Codebook{}.decode(code); }
};

struct plain_feedback {
  static constexpr bool enabled = true;
  constexpr description describe() const { return error_feedback{}.describe(); }

  template <class Arithmetic>
  TERSUM_HOST_DEVICE float before(Arithmetic const& math, float gradient, float kept) const
  {
    return error_feedback{}.before(math, gradient, kept);
  }
  template <class Arithmetic>
  TERSUM_HOST_DEVICE float after(Arithmetic const& math, float value, float lost, float kept) const
  {
    return error_feedback{}.after(math, value, lost, kept);
  }
};

struct plain_diagonal {
  static constexpr bool scaled = true;
  constexpr description describe() const { return metric.describe(); }

  kept_diagonal metric = {};

  template <class Arithmetic>
  TERSUM_HOST_DEVICE float least(Arithmetic const& math, float largest) const
  {
    return metric.least(math, largest);
  }
  template <class Arithmetic>
  TERSUM_HOST_DEVICE float update(Arithmetic const& math,
                                  float value,
                                  float scale,
                                  float steps_before) const
  {
    return metric.update(math, value, scale, steps_before);
  }
};

}  // namespace tersum::tests
