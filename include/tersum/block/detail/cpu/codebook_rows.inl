// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of codebook codes on one CPU thread, on top of chunk_rows.inl: their values and packed codes in rows, and the way from one to
//! the other. Rotated values stay in rows,
//! an arrangement that each instruction set has of its own, until they are rotated back or become codes.

//! @brief A chunk to rows, signed and rotated without the factor 1 / sqrt(Size), or as it is.
template <int Size, bool Rotate = true, chunk_pointer From>
TERSUM_TARGET void rotate_to_rows(std::uint64_t sign_key,
                                  std::uint64_t chunk,
                                  From from,
                                  float* rows)
{
  std::uint32_t signs[sign_room<Size>];
  chunk_signs<Size, Rotate>(chunk, sign_key, signs);
  load_rows<Size, Rotate, Rotate>(from, signs, rows);
  if constexpr (Rotate) {
    middle_rows<Size>(rows);
    wire_rows<Size, false>(rows, from);
  }
}

//! @brief Undoes it, multiplied by `scale`. Overwrites the rows.
template <int Size, bool Rotate = true, chunk_pointer To>
TERSUM_TARGET void rotate_from_rows(
  std::uint64_t sign_key, std::uint64_t chunk, float scale, float* rows, To to)
{
  std::uint32_t signs[sign_room<Size>];
  chunk_signs<Size, Rotate>(chunk, sign_key, signs);
  if constexpr (Rotate) {
    wire_rows<Size, true>(rows, to);
    middle_rows<Size>(rows);
  }
  store_rows<Size, Rotate>(to, signs, scale, rows);
}

//! @brief The total of the sums of all groups, which the lanes of the row blocks hold, neighbours first.
template <int Size>
TERSUM_SIMD float add_groups(floats (&sums)[rows_of<Size>::parts])
{
  constexpr int parts = rows_of<Size>::parts;
  TERSUM_UNROLL
  for (int i = 0; i < parts; ++i) {
    sums[i] = sums[i] + exchange<1>(sums[i]);
    sums[i] = sums[i] + exchange<2>(sums[i]);
    if constexpr (width >= 8) { sums[i] = sums[i] + exchange<4>(sums[i]); }
  }
  for (int count = parts; count > 1; count /= 2) {
    for (int i = 0; i < count / 2; ++i) { sums[i] = sums[2 * i] + sums[2 * i + 1]; }
  }
  if constexpr (width == 16) { sums[0] = sums[0] + exchange<8>(sums[0]); }
  return sums[0][0];
}

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
