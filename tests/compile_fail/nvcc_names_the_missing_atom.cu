// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantizer that does not say whether it is unbiased: nvcc names the requirement where a codec is given it.
// expected: has_unbiased

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <cstdint>

struct silent_quantizer {
  using dither                       = tersum::no_dither;
  static constexpr int bits          = 2;
  static constexpr int max_level     = 1;
  static constexpr int fraction_bits = 0;
  constexpr tersum::description describe() const { return {"silent_quantizer"}; }

  [[nodiscard]] std::int32_t encode(float value, float, std::uint32_t) const noexcept
  {
    return value > 0.0f ? 1 : -1;
  }
};

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            tersum::summed_codes<tersum::rms_range<tersum::no_headroom>,
                                                 silent_quantizer,
                                                 tersum::saturating_sum<2>>,
                            tersum::in_wire>;

int const size = codec::chunk_size;
