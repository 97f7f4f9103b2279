// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of more bits than kernels pack.
// expected: tersum: a quantizer has 2 to 8 bits

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <cstdint>

struct wide_quantizer {
  using dither                       = tersum::no_dither;
  static constexpr int bits          = 16;
  static constexpr int max_level     = 32767;
  static constexpr int fraction_bits = 0;
  static constexpr bool unbiased     = false;

  [[nodiscard]] std::int32_t encode(float value, float scale, std::uint32_t) const noexcept
  {
    return static_cast<std::int32_t>(value * scale);
  }
};

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            tersum::rms_range<tersum::no_headroom>,
                            wide_quantizer,
                            tersum::saturating_sum<16>>;

int const size = codec::chunk_size;
