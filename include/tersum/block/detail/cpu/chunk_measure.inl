// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the ranks agree on of one chunk, on one CPU thread, on top of chunk_rows.inl: norms and magnitudes.

//! @brief Adds neighbours among the lanes of `Count` vectors until one vector is left.
template <int Count, std::size_t Room>
TERSUM_SIMD void add_pairs(floats (&sums)[Room])
{
  if constexpr (Count > 1) {
    TERSUM_UNROLL
    for (int i = 0; i < Count / 2; ++i) {
      sums[i] = even(sums[2 * i], sums[2 * i + 1]) + odd(sums[2 * i], sums[2 * i + 1]);
    }
    add_pairs<Count / 2>(sums);
  }
}

//! @brief The squared norm of a chunk by the tree of `chunk_norms`.
template <int Size, chunk_pointer From>
TERSUM_TARGET inline float square_norm(From from)
{
  constexpr int vectors = (Size < 256 ? Size : 256) / width;
  constexpr int group   = minimum(vectors, width == 16 ? 16 : 8);  // as many as registers hold
  floats sums[extent(vectors)];
  for (int first = 0; first < vectors; first += group) {
    floats some[extent(group)] = {};
    for (int block = 0; block < Size; block += 256) {
      TERSUM_UNROLL
      for (int i = 0; i < group; ++i) {
        From const at = from + (block + (first + i) * width);
        fetch_beyond<false>(at);
        floats const v = load_values(at);
        some[i]        = fma(v, v, some[i]);
      }
    }
    TERSUM_UNROLL
    for (int i = 0; i < group; ++i) { sums[first + i] = some[i]; }
  }
  add_pairs<vectors>(sums);
  floats v = sums[0];
  v        = v + exchange<1>(v);
  v        = v + exchange<2>(v);
  if constexpr (width >= 8) { v = v + exchange<4>(v); }
  if constexpr (width >= 16) { v = v + exchange<8>(v); }
  return v[0];
}

//! @brief The bits of the largest magnitude of one rotated chunk, unnormalized; NaN is above infinity.
template <class Codec, chunk_pointer From>
TERSUM_TARGET inline std::uint32_t largest_magnitude(std::uint64_t sign_key,
                                                     std::uint64_t chunk,
                                                     From from)
{
  constexpr int size = Codec::chunk_size;
  if (!Codec::rotates_chunks) { return float_bits(largest_of(from, size)); }
  alignas(64) float rows[extent(size)];
  rotate_to_rows<size>(sign_key, chunk, from, rows);
  return float_bits(largest_of(+rows, size));
}
