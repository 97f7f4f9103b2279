// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Encodes and decodes chunks of codebook codes on one CPU thread, in the rows of codebook_rows.inl.

//! @brief The sums of squares of the groups of a chunk, added up.
template <int Size>
TERSUM_SIMD float square_rows(float const* rows)
{
  using shape               = rows_of<Size>;
  constexpr int stride      = shape::split * width;
  floats sums[shape::parts] = {};
  // Of all groups at once, so that sums do not wait for each other.
  for (int k = 0; k < 32; ++k) {
    TERSUM_UNROLL
    for (int i = 0; i < shape::parts; ++i) {
      floats const v =
        load(rows + first_row_of<Size>(i / shape::split, i % shape::split) + k * stride);
      sums[i] = fma(v, v, sums[i]);
    }
  }
  return add_groups<Size>(sums);
}

//! @name Levels on lines, as `level_lines` has them: places as floats
//! @{
template <class Lines>
TERSUM_SIMD floats place_on_lines(floats magnitude)
{
  floats const one   = from_bits(rounded_bits<0>(magnitude, Lines::inverse));
  floats const two   = from_bits(rounded_bits<Lines::start_2>(magnitude, Lines::inverse / 2));
  floats const eight = from_bits(rounded_bits<Lines::start_8>(magnitude, Lines::inverse / 8));
  floats const last  = from_bits(broadcast(Lines::last_place));
  floats const lower = two < one ? two : one;
  floats const other = last < eight ? last : eight;
  return other < lower ? other : lower;
}
template <class Lines>
TERSUM_SIMD floats level_on_lines(floats place)
{
  // All of it is exact.
  floats const x     = (place - Lines::lift) * Lines::step;
  floats const two   = x * 2.0f - Lines::below_2;
  floats const eight = x * 8.0f - Lines::below_8;
  floats const upper = x < two ? two : x;
  return upper < eight ? eight : upper;
}
//! @}

//! @brief The codes of a row. `scale` is one over the root mean square. Adds values times their levels to `product`.
template <class Quantizer>
TERSUM_SIMD words code_row(floats value, floats scale, floats& product)
{
  words const v          = to_bits(value);
  floats const magnitude = from_bits(v & 0x7fffffffu);
  words number;
  floats level;
  if constexpr (has_lines<Quantizer>) {
    using lines        = typename Quantizer::lines;
    floats const place = place_on_lines<lines>(magnitude * scale);
    number             = to_bits(place) - lines::first_place;
    level              = level_on_lines<lines>(place);
  } else {
    number = cell_of<Quantizer>(magnitude * scale);
    level  = look_up<Quantizer::magnitudes>(Quantizer::levels(), number);
  }
  product = fma(magnitude, level, product);
  return number | (v >> 31) << (Quantizer::bits - 1);
}

//! @brief The levels of codes, which lie in the low bits.
template <class Quantizer>
TERSUM_SIMD floats level_row(words code)
{
  constexpr int bits = Quantizer::bits;
  words const number = code & ((1u << (bits - 1)) - 1u);
  floats level;
  if constexpr (has_lines<Quantizer>) {
    using lines = typename Quantizer::lines;
    level       = level_on_lines<lines>(from_bits(number + lines::first_place));
  } else {
    level = look_up<Quantizer::magnitudes>(Quantizer::levels(), number);
  }
  words const sign = code >> (bits - 1) << 31;
  return from_bits(to_bits(level) ^ sign);
}

//! @brief Encodes rows. Returns the chunk's scale, |v|^2 / <v, levels>, with which the estimate is unbiased. If the energy
//! is next to nothing the scale is zero, if it is not finite NaN; the codes are then zeros.
template <class Quantizer, int Size>
TERSUM_TARGET float quantize_rows(float const* rows, std::uint32_t* to)
{
  using shape          = rows_of<Size>;
  constexpr int bits   = Quantizer::bits;
  constexpr int stride = shape::split * width;
  float const energy   = square_rows<Size>(rows);
  if (!(energy >= 0x1p-100f && is_finite(energy))) {
    for (int i = 0; i < Size / 32 * bits; ++i) { to[i] = 0; }
    return energy < 0x1p-100f ? 0.0f : bits_float(0x7fffffffu);
  }
  // One over the root mean square.
  floats const scale = broadcast(::sqrtf(static_cast<float>(Size) / energy));
  floats sums[shape::parts];
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      float const* const first = rows + first_row_of<Size>(block, part);
      floats product{};
      words packed[extent(bits)];
      if constexpr (by_lines<Quantizer>) {
#if TERSUM_SIMD_WIDTH == 16
        codes_by_lines<Quantizer>(first, stride, scale, to + block * bits * width, product, packed);
#endif
      } else {
        words codes[32];
        for (int k = 0; k < 32; ++k) {
          if (k % 4 == 0) {
            fetch_beyond<true>(to + ((block * shape::split + part) * bits + k * bits / 32) * width);
          }
          codes[k] = code_row<Quantizer>(load(first + k * stride), scale, product);
        }
        TERSUM_UNROLL
        for (int w = 0; w < bits; ++w) { packed[w] = words{}; }
        TERSUM_UNROLL
        for (int k = 0; k < 32; ++k) {
          int const word  = k * bits / 32;
          int const shift = k * bits % 32;
          packed[word] |= codes[k] << shift;
          if (shift + bits > 32) { packed[word + 1] |= codes[k] >> (32 - shift); }
        }
      }
      sums[block * shape::split + part] = product;
      store_codes<Size>(block, part, packed, to);
    }
  }
  return energy / add_groups<Size>(sums);
}

//! @brief Adds scale times the levels of codes to the rows, or overwrites the rows if they are `fresh`.
template <class Quantizer, int Size>
TERSUM_TARGET void add_levels(std::uint32_t const* from, float scale, float* rows, bool fresh)
{
  using shape          = rows_of<Size>;
  constexpr int bits   = Quantizer::bits;
  constexpr int stride = shape::split * width;
  float const zeros[width]{};
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      float* const first = rows + first_row_of<Size>(block, part);
      words packed[extent(bits)];
      load_codes<Size>(from, block, part, packed);
      words codes[32];
      TERSUM_UNROLL
      for (int k = 0; k < 32; ++k) {
        int const word  = k * bits / 32;
        int const shift = k * bits % 32;
        codes[k]        = packed[word] >> shift;
        if (shift + bits > 32) { codes[k] |= packed[word + 1] << (32 - shift); }
      }
      for (int k = 0; k < 32; ++k) {
        floats const value  = level_row<Quantizer>(codes[k]);
        floats const before = load(fresh ? zeros : first + k * stride);
        store(first + k * stride, fma(value, broadcast(scale), before));
      }
    }
  }
}
