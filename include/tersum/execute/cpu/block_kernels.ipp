// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of `block_absmax` on one CPU thread. Values lie as in the gradient: a group of 32
//! positions of the wire has eight coordinates of each quarter of the chunk.

//! @brief The word with the scale of a block, and how far up in it, from the block's first coordinate.
template <class Quantizer, int Size>
TERSUM_SIMD int scale_place(int first, int& shift)
{
  constexpr int in_a_word = 32 / Quantizer::scale::bits;
  int const r             = first / (Size / 4);
  shift                   = r % in_a_word * Quantizer::scale::bits;
  return Size / 32 * Quantizer::bits +
         (4 * (first % (Size / 4) / Quantizer::block) + r) / in_a_word;
}

//! @brief Codes and block scales of values. Returns the chunk's scale: its largest magnitude, zero where there is next to
//! nothing, NaN where a value is not finite, with zero codes.
template <class Quantizer, int Size>
TERSUM_TARGET float encode_blocks(float const* values,
                                  std::uint32_t const* thresholds,
                                  std::uint32_t* to)
{
  using scale        = typename Quantizer::scale;
  constexpr int bits = Quantizer::bits;
  for (std::uint32_t i = 0; i < coded_words<Quantizer>(Size); ++i) { to[i] = 0; }
  std::uint32_t largest = 0;
  for (int i = 0; i < Size; ++i) {
    largest = maximum(largest, float_bits(values[i]) & 0x7fffffffu);
  }
  float const whole = bits_float(largest);
  if (!is_finite(whole)) { return bits_float(0x7fffffffu); }
  if (whole < 0x1p-100f) { return 0.0f; }
  std::uint32_t codes[Size];
  for (int first = 0; first < Size; first += Quantizer::block) {
    int shift          = 0;
    int const word     = scale_place<Quantizer, Size>(first, shift);
    std::uint32_t most = 0;
    for (int i = first; i < first + Quantizer::block; ++i) {
      most = maximum(most, float_bits(values[i]) & 0x7fffffffu);
    }
    std::uint32_t const code = scale::encode(bits_float(most) / whole);
    to[word] |= code << shift;
    float const scaled  = scale::decode(code) * whole;
    float const inverse = scaled >= least_block ? static_cast<float>(block_one) / scaled : 0.0f;
    for (int i = first; i < first + Quantizer::block; ++i) {
      std::uint32_t const value = float_bits(values[i]);
      auto const magnitude = static_cast<std::int32_t>(bits_float(value & 0x7fffffffu) * inverse);
      std::uint32_t const number =
        Quantizer::round(minimum(static_cast<std::uint32_t>(magnitude), block_one),
                         thresholds[i],
                         Quantizer::mark.data());
      codes[i] = number | (value >> 31) << (bits - 1);
    }
  }
  for (int group = 0; group < Size / 32; ++group) {
    std::uint32_t* const packed = to + group * bits;
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) {
      std::uint32_t const code = codes[k / 8 * (Size / 4) + group * 8 + k % 8];
      int const word           = k * bits / 32;
      int const shift          = k * bits % 32;
      packed[word] |= code << shift;
      if (shift + bits > 32) { packed[word + 1] |= code >> (32 - shift); }
    }
  }
  return whole;
}

//! @brief Adds what codes say to values, `whole` being the chunk's scale times some factor.
template <class Quantizer, int Size>
TERSUM_TARGET void add_blocks(std::uint32_t const* from, float whole, float* values)
{
  constexpr int bits = Quantizer::bits;
  std::uint32_t codes[Size];
  for (int group = 0; group < Size / 32; ++group) {
    std::uint32_t const* const packed = from + group * bits;
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) {
      int const word     = k * bits / 32;
      int const shift    = k * bits % 32;
      std::uint32_t code = packed[word] >> shift;
      if (shift + bits > 32) { code |= packed[word + 1] << (32 - shift); }
      codes[k / 8 * (Size / 4) + group * 8 + k % 8] = code;
    }
  }
  for (int first = 0; first < Size; first += Quantizer::block) {
    int shift                    = 0;
    int const word               = scale_place<Quantizer, Size>(first, shift);
    constexpr std::uint32_t full = (1u << Quantizer::scale::bits) - 1;
    float const scale            = Quantizer::scale::decode(from[word] >> shift & full) * whole;
    float levels[Quantizer::block];
    for (int i = 0; i < Quantizer::block; ++i) {
      std::uint32_t const code  = codes[first + i];
      std::uint32_t const level = float_bits(Quantizer::level[code & (Quantizer::magnitudes - 1u)]);
      levels[i]                 = bits_float(level | (code >> (bits - 1)) << 31);
    }
    fused_add(scale, levels, values + first, Quantizer::block, values + first);
  }
}
