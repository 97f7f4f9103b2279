// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Places, which tell the cell of a magnitude without a comparison.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0::detail {

//! @brief Whether the cells of a codebook end where places do.
template <class Quantizer>
concept has_places = requires
{
  Quantizer::slope + Quantizer::offset;
};

//! @brief Where a magnitude of m root mean squares lies: at y = slope m + offset, or at 1 if that is less.
//!
//! Bits 19 to 23 of the float y number its place: from 1/4 to 1/2 places are 64ths, from there on 32nds, narrow where levels are near
//! each other. The offset is above 17/64, so that the place of 1 is no other's.
template <has_places Line>
struct cell_places {
  static constexpr int shift = 19;

  //! y as a fused multiply-add gives it: its operands are exact in double.
  [[nodiscard]] static constexpr float at(float m) noexcept
  {
    return static_cast<float>(static_cast<double>(m) * static_cast<double>(Line::slope) +
                              static_cast<double>(Line::offset));
  }

  //! The beginning of a place that is nearest to y.
  [[nodiscard]] static constexpr float nearest(float y) noexcept
  {
    float const all = y < 0.5f ? 64.0f : 32.0f;
    return static_cast<float>(static_cast<int>(y * all + 0.5f)) / all;
  }

  //! The least magnitude that lies in or behind the place that begins nearest to m.
  [[nodiscard]] static constexpr float least(float m) noexcept
  {
    float const end    = nearest(at(m));
    std::uint32_t bits = float_bits((end - Line::offset) / Line::slope) + 4;
    while (at(bits_float(bits - 1)) >= end) { --bits; }
    return bits_float(bits);
  }
};

//! @brief The levels of all places of a codebook, whose lowest bits are their numbers, and where its cells end.
template <has_places Quantizer>
struct placed_levels {
  static constexpr unsigned cells = Quantizer::magnitudes;
  using places                    = cell_places<Quantizer>;

  alignas(64) float level[32];
  float end[cells];

  [[nodiscard]] static constexpr placed_levels make() noexcept
  {
    placed_levels out{};
    for (unsigned k = 0; k < cells; ++k) {
      out.end[k] = k + 1 < cells ? places::nearest(places::at(Quantizer::boundaries()[k])) : 2.0f;
    }
    unsigned cell = 0;
    for (float y = 0.265625f; y <= 1.0f; y += y < 0.5f ? 0x1p-6f : 0x1p-5f) {
      while (y >= out.end[cell]) { ++cell; }
      out.level[float_bits(y) >> places::shift & 31u] = Quantizer::levels()[cell];
    }
    return out;
  }
};

template <class Quantizer>
inline constexpr placed_levels<Quantizer> placed_levels_of = placed_levels<Quantizer>::make();

}  // namespace tersum::inline v0::detail
