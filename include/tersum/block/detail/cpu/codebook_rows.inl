// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of codebook codes on one CPU thread, on top of chunk_rows.inl: their values and packed codes in rows. Rotated values stay in rows,
//! an arrangement that each instruction set has of its own, until they are rotated back or become codes.
//!
//! A *group* is 32 positions of the wire, which one lane of a row block holds: position k of the group is in row k. Its codes
//! are q whole words.

//! @brief The number of the group that a lane of a row block holds.
template <int Size>
TERSUM_SIMD int group_of(int block, int part, int lane)
{
  using shape     = rows_of<Size>;
  int const upper = shape::joined && lane >= 8 ? shape::upper_block : 0;
  return (block + upper) * 8 + 4 * part + lane % 8;
}

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

//! @brief Stores the packed codes of 32 rows, `Bits` words in each lane, as the words of their groups.
template <int Size, std::size_t Bits>
TERSUM_SIMD void store_codes(int block, int part, words (&packed)[Bits], std::uint32_t* to)
{
  constexpr int bits         = static_cast<int>(Bits);
  std::uint32_t* const first = to + group_of<Size>(block, part, 0) * bits;
  std::uint32_t* const upper = to + group_of<Size>(block, part, width - 1) * bits - 7 * bits;
  if constexpr ((bits & (bits - 1)) == 0 && !(bits == 1 && width == 16)) {
    constexpr int half = width == 16 ? bits / 2 : bits;  // what goes to `first`
    zip(packed);
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      store(w < half ? first + w * width : upper + (w - half) * width, packed[w]);
    }
  } else {
    std::uint32_t lanes[Bits][width];
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { store(lanes[w], packed[w]); }
    for (int lane = 0; lane < width; ++lane) {
      std::uint32_t* const group = (lane < 8 ? first : upper) + lane % 8 * bits;
      TERSUM_UNROLL
      for (int w = 0; w < bits; ++w) { group[w] = lanes[w][lane]; }
    }
  }
}

//! @brief Loads the packed codes of 32 rows: each lane gets the `Bits` words of its group.
template <int Size, std::size_t Bits>
TERSUM_SIMD void load_codes(std::uint32_t const* from, int block, int part, words (&packed)[Bits])
{
  constexpr int bits               = static_cast<int>(Bits);
  std::uint32_t const* const first = from + group_of<Size>(block, part, 0) * bits;
  std::uint32_t const* const upper =
    from + group_of<Size>(block, part, width - 1) * bits - 7 * bits;
  if constexpr ((bits & (bits - 1)) == 0 && !(bits == 1 && width == 16)) {
    constexpr int half = width == 16 ? bits / 2 : bits;
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      packed[w] = load_words(w < half ? first + w * width : upper + (w - half) * width);
    }
    unzip(packed);
  } else {
    std::uint32_t lanes[Bits][width];
    for (int lane = 0; lane < width; ++lane) {
      std::uint32_t const* const group = (lane < 8 ? first : upper) + lane % 8 * bits;
      TERSUM_UNROLL
      for (int w = 0; w < bits; ++w) { lanes[w][lane] = group[w]; }
    }
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { packed[w] = load_words(lanes[w]); }
  }
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
