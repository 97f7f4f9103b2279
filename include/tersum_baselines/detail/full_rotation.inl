// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rotations across the chunks of a tensor, a few levels at a time.

//! @brief The butterflies of `Levels` index bits from `stride` on, between columns of vectors.
template <int Levels>
TERSUM_TARGET inline void full_columns(float* data,
                                       std::uint64_t begin,
                                       std::uint64_t end,
                                       std::uint64_t stride,
                                       std::uint64_t share,
                                       std::uint64_t shares)
{
  std::uint64_t const columns = stride / shares;
  for (std::uint64_t base = begin; base < end; base += stride << Levels) {
    for (std::uint64_t at = base + share * columns; at < base + (share + 1) * columns;
         at += width) {
      floats v[1 << Levels];
      TERSUM_UNROLL
      for (unsigned i = 0; i < 1u << Levels; ++i) { v[i] = load(data + at + i * stride); }
      row_butterflies<0, Levels>(v);
      TERSUM_UNROLL
      for (unsigned i = 0; i < 1u << Levels; ++i) { store(data + at + i * stride, v[i]); }
    }
  }
}

//! @brief The butterflies of the index bits first .. first+levels-1 of data[begin, end), ascending and in place. The columns
//! are cut into `shares`, of which a call does one.
TERSUM_TARGET inline void full_pass(float* data,
                                    std::uint64_t begin,
                                    std::uint64_t end,
                                    int first,
                                    int levels,
                                    std::uint64_t share,
                                    std::uint64_t shares)
{
  // Columns of vectors at a stride of 2^first; the first pass has its lowest bits within a vector.
  if (first == 0) {
    for (std::uint64_t at = begin; at < end; at += 32) {
      floats v[32 / width];
      TERSUM_UNROLL
      for (int i = 0; i < 32 / width; ++i) {
        v[i] =
          lane_butterfly<2>(lane_butterfly<1>(load(data + at + static_cast<unsigned>(i * width))));
        if constexpr (width >= 8) { v[i] = lane_butterfly<4>(v[i]); }
        if constexpr (width >= 16) { v[i] = lane_butterfly<8>(v[i]); }
      }
      row_butterflies<0, 5 - log2_exact(width)>(v);
      TERSUM_UNROLL
      for (int i = 0; i < 32 / width; ++i) {
        store(data + at + static_cast<unsigned>(i * width), v[i]);
      }
    }
    return;
  }
  std::uint64_t const stride = std::uint64_t{1} << first;
  switch (levels) {
    case 1: return full_columns<1>(data, begin, end, stride, share, shares);
    case 2: return full_columns<2>(data, begin, end, stride, share, shares);
    case 3: return full_columns<3>(data, begin, end, stride, share, shares);
    case 4: return full_columns<4>(data, begin, end, stride, share, shares);
    default: return full_columns<5>(data, begin, end, stride, share, shares);
  }
}

//! @brief Flips the signs of a chunk.
template <int Size>
TERSUM_TARGET inline void flip_signs(std::uint64_t chunk, std::uint64_t sign_key, float* values)
{
  std::uint32_t signs[sign_room<Size>];
  chunk_signs<Size>(chunk, sign_key, signs);
  constexpr int quarter = Size / 4;
  constexpr int split   = rows_of<Size>::split;
  constexpr int step    = width == 16 ? 16 : 8;
  for (int q = 0; q < 4; ++q) {
    for (int o = 0; o < quarter; o += step) {
      for (int s = 0; s < split; ++s) {
        int const at = q * quarter + o + s * width;
        store(values + at, from_bits(to_bits(load(values + at)) ^ sign_mask(signs, o / 8, q, s)));
      }
    }
  }
}
