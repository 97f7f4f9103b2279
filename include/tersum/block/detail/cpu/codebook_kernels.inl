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
      vector_value<floats> product{};
      words packed[extent(bits)];
      if constexpr (by_lines<Quantizer>) {
#if TERSUM_SIMD_WIDTH == 16
        codes_by_lines<Quantizer>(
          first, stride, scale, to + block * bits * width, product.v, packed);
#endif
      } else {
        words codes[32];
        for (int k = 0; k < 32; ++k) {
          if (k % 4 == 0) {
            fetch_beyond<true>(to + ((block * shape::split + part) * bits + k * bits / 32) * width);
          }
          codes[k] =
            code_value<Quantizer, vector_value<floats>>(load(first + k * stride), scale, product).v;
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
      sums[block * shape::split + part] = product.v;
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
      TERSUM_UNROLL
      for (int w = 0; w < bits; ++w) {
        fetch_beyond<false>(from + ((block * shape::split + part) * bits + w) * width);
      }
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
        floats const value  = level_of_code<Quantizer>(vector_value<words>(codes[k])).v;
        floats const before = load(fresh ? zeros : first + k * stride);
        store(first + k * stride, fma(value, broadcast(scale), before));
      }
    }
  }
}
