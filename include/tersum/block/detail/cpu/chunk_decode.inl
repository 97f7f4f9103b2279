// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Summed codes of one chunk to their mean on one CPU thread, on top of chunk_rows.inl.

//! @brief Unpacks one block of rows and begins the inverse transform. Where there is none and rows lie as the gradient does, it
//! stores the values.
template <class Codec, chunk_pointer To>
TERSUM_SIMD void decode_block(int world,
                              int block,
                              int part,
                              float scale,
                              std::uint32_t const* chunk_words,
                              To to,
                              float* rows,
                              chunk_step& counts)
{
  constexpr int size    = Codec::chunk_size;
  using shape           = rows_of<size>;
  using lanes           = typename Codec::lanes;
  constexpr int columns = shape::in_block / 4;
  constexpr int runs    = shape::in_block / lanes::lanes;
  constexpr int levels  = Codec::rotates_chunks ? shape::wire_levels : 0;
  constexpr int stride  = shape::split * width;

  words packed[extent(runs)];
  load_codes<size>(chunk_words, block, part, packed);

  float* const first_row = rows + shape::number(block, part, 0) * width;
  floats squares         = {};
  integers limits        = {};
  TERSUM_UNROLL
  for (int m = 0; m < columns; ++m) {
    floats v[4];
    TERSUM_UNROLL
    for (int c = 0; c < 4; ++c) {
      int const k      = 4 * m + c;
      words const word = packed[k / lanes::lanes];
      integers code;
      if constexpr (Codec::reducer_type::biased) {
        code = (integers)((word >> static_cast<std::uint32_t>(lanes::bits * (k % lanes::lanes))) &
                          lanes::full) -
               world * Codec::quantizer_type::max_level;
      } else {
        code = (integers)(word << static_cast<std::uint32_t>(32 - lanes::bits *
                                                                    (k % lanes::lanes + 1))) >>
               (32 - lanes::bits);
      }
      v[c] = __builtin_convertvector(code, floats);
      if (saturates<Codec>) {
        limits -= (integers)(code >= lanes::limit) + (integers)(code <= -lanes::limit);
      }
      if (tracks<Codec>) { squares = squares + v[c] * v[c]; }  // integers below 2^24: exact
    }
    if constexpr (levels > 0) { row_butterflies<0, (levels < 2 ? levels : 2)>(v); }
    TERSUM_UNROLL
    for (int c = 0; c < 4; ++c) {
      To const at = to + (static_cast<int>(first_row - rows) + (4 * m + c) * stride);
      if (levels == 0 && !shape::joined) {
        fetch_beyond<true, tuning{}.cpu.write_ahead * 3 / 2>(at);
        store_values(at, within_range<typename stored_element<To>::type>(v[c] * broadcast(scale)));
      } else {
        fetch_beyond<true>(at);
        store(first_row + (4 * m + c) * stride, v[c]);
      }
    }
  }
  if constexpr (levels > 2) {
    TERSUM_UNROLL
    for (int c = 0; c < 4; ++c) {
      floats v[extent(columns)];
      TERSUM_UNROLL
      for (int m = 0; m < columns; ++m) { v[m] = load(first_row + (4 * m + c) * stride); }
      row_butterflies<0, levels - 2>(v);
      TERSUM_UNROLL
      for (int m = 0; m < columns; ++m) { store(first_row + (4 * m + c) * stride, v[m]); }
    }
  }
  if (saturates<Codec>) {
    for (int lane = 0; lane < width; ++lane) {
      counts.saturated += static_cast<std::uint32_t>(limits[lane]);
      counts.square_sum += static_cast<std::uint32_t>(squares[lane]);
    }
  }
}

//! @brief Decodes one chunk of summed codes to the mean.
template <class Codec, chunk_pointer To>
TERSUM_TARGET inline void decode_chunk(int world,
                                       std::uint64_t sign_key,
                                       std::uint64_t chunk,
                                       float scale,
                                       std::uint32_t const* chunk_words,
                                       To to,
                                       chunk_step& step)
{
  constexpr int size = Codec::chunk_size;
  using shape        = rows_of<size>;
  alignas(64) float rows[extent(size)];
  std::uint32_t signs[sign_room<size>];
  chunk_signs<size, Codec::rotates_chunks>(chunk, sign_key, signs);
  chunk_step counts{};
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      decode_block<Codec>(world, block, part, scale, chunk_words, to, rows, counts);
    }
  }
  if (Codec::rotates_chunks) { middle_rows<size>(rows); }
  if (Codec::rotates_chunks || shape::joined) {
    store_rows<size, Codec::rotates_chunks>(to, signs, scale, rows);
  }
  if (saturates<Codec>) { step.saturated = counts.saturated; }
  if (tracks<Codec>) { step.square_sum = counts.square_sum; }
}
