// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The sum of two encodings, encoded again: what every hop does to the payload of a per-hop codec.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief Chunks that travel together: their codes one after the other, then their scales, that of the first chunk last.
//!
//! Four scales are 16 bytes, so that blocks need no padding and keep the alignment of the array.
template <codebook Quantizer, int Size>
struct coded_block {
  static constexpr int chunks     = 4;
  static constexpr int code_words = Size / 32 * Quantizer::bits;  //!< Words of a chunk's codes.
  static constexpr int words      = chunks * (code_words + 1);

  std::uint32_t word[words];

  //! The first word of a chunk's codes.
  [[nodiscard]] static constexpr int first_of(int chunk) noexcept { return chunk * code_words; }
  //! The word in which a chunk's scale lies.
  [[nodiscard]] static constexpr int scale_of(int chunk) noexcept { return words - 1 - chunk; }
};

//! @brief Decodes the chunks of two blocks, adds them, and encodes the sums: one hop. docs/wire_format.md has the formulas.
//!
//! Commutative to the last bit, but not associative: every hop loses what an encoding loses. Both ranks have rotated by
//! the same signs, so that nothing is rotated here. A chunk whose sum is not finite gets the scale NaN.
//!
//! This is the definition, for any transport that can call it; executors reduce arrays to the same bits with kernels.
//! @tparam Quantizer  `lloyd_max<q>`.
//! @tparam Size       Coordinates of a chunk.
template <codebook Quantizer, int Size>
struct recoded_sum {
  using element                     = coded_block<Quantizer, Size>;
  using quantizer_type              = Quantizer;
  static constexpr bool native      = false;
  static constexpr bool associative = false;
  static constexpr bool exact       = false;
  static constexpr bool recodes     = true;  //!< Elements are decoded, added and encoded again.
  static constexpr int chunk_size   = Size;

  static_assert(sizeof(element) % 16 == 0 && std::is_trivially_copyable_v<element>);

  [[nodiscard]] element operator()(element const& a, element const& b) const noexcept
  {
    element sum{};
    for (int chunk = 0; chunk < element::chunks; ++chunk) {
      float v[Size];
      for (int p = 0; p < Size; ++p) { v[p] = estimate(a, chunk, p) + estimate(b, chunk, p); }
      encode(v, chunk, sum);
    }
    return sum;
  }

 private:
  static constexpr int bits = Quantizer::bits;

  //! What a block says of one value: the product is rounded, whatever the compiler would make of the sum.
  [[nodiscard]] static float estimate(element const& from, int chunk, int p) noexcept
  {
    int const first    = element::first_of(chunk) + p * bits / 32;
    int const shift    = p * bits % 32;
    std::uint64_t both = from.word[first];
    if (shift + bits > 32) { both |= static_cast<std::uint64_t>(from.word[first + 1]) << 32; }
    float const level = Quantizer{}.decode(static_cast<std::uint32_t>(both >> shift));
    return std::fma(level, detail::bits_float(from.word[element::scale_of(chunk)]), 0.0f);
  }

  //! The sum over a chunk: 32 neighbours in a row, then pairs of sums.
  template <class Term>
  [[nodiscard]] static float total(Term const& term) noexcept
  {
    float sums[Size / 32];
    for (int group = 0; group < Size / 32; ++group) {
      float sum = 0;
      for (int p = group * 32; p < group * 32 + 32; ++p) { sum = term(p, sum); }
      sums[group] = sum;
    }
    for (int count = Size / 64; count > 0; count /= 2) {
      for (int i = 0; i < count; ++i) { sums[i] = sums[2 * i] + sums[2 * i + 1]; }
    }
    return sums[0];
  }

  static void encode(float const* v, int chunk, element& to) noexcept
  {
    std::uint32_t& scale = to.word[element::scale_of(chunk)];
    float const energy   = total([&](int p, float sum) { return std::fma(v[p], v[p], sum); });
    if (!(energy >= 0x1p-100f && detail::is_finite(energy))) {
      scale = energy < 0x1p-100f ? 0u : 0x7fffffffu;
      return;
    }
    float const root    = std::sqrt(static_cast<float>(Size) / energy);
    float const product = total([&](int p, float sum) {
      std::uint32_t const code = Quantizer{}.encode(v[p] * root);
      int const first          = element::first_of(chunk) + p * bits / 32;
      int const shift          = p * bits % 32;
      to.word[first] |= code << shift;
      if (shift + bits > 32) { to.word[first + 1] |= code >> (32 - shift); }
      constexpr std::uint32_t magnitudes = Quantizer::magnitudes - 1u;
      return std::fma(std::fabs(v[p]), Quantizer::levels()[code & magnitudes], sum);
    });
    scale               = detail::float_bits(energy / product);
  }
};

}  // namespace tersum::inline v0
