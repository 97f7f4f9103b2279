// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One chunk to its codes on one CPU thread, on top of chunk_rows.inl.

//! @brief Puts the codes of row k = 4 m + C into their lanes of the words.
template <class Codec, int C, std::size_t Runs>
TERSUM_SIMD void pack_row(words field, int m, words (&packed)[Runs])
{
  using lanes                  = typename Codec::lanes;
  constexpr int shift          = code_shift<typename Codec::quantizer_type>;
  constexpr std::uint32_t code = lanes::full & 0xffu;
  int const k                  = 4 * m + C;
  int const place              = lanes::bits * (k % lanes::lanes);
  words const moved            = place >= shift ? field << static_cast<std::uint32_t>(place - shift)
                                                : field >> static_cast<std::uint32_t>(shift - place);
  packed[k / lanes::lanes] |= moved & (code << place);
}

//! @brief Does the last butterflies of the rows C, C + 4, C + 8 ... of a block, rounds them, and puts the codes into words.
template <class Codec, bool Keep, int C, class Source, std::size_t Draws, std::size_t Runs>
TERSUM_SIMD void encode_rows(Codec const& codec,
                             float scale,
                             Source const& source,
                             int offset,
                             float* first_row,
                             words const (&random)[Draws][4],
                             [[maybe_unused]] std::uint32_t const* payload,
                             words (&packed)[Runs])
{
  using shape           = rows_of<Codec::chunk_size>;
  using quantizer       = typename Codec::quantizer_type;
  constexpr int columns = shape::in_block / 4;
  constexpr int stride  = shape::split * width;
  constexpr int levels  = Codec::rotates_chunks ? shape::wire_levels : 0;
  floats v[extent(columns)];
  TERSUM_UNROLL
  for (int m = 0; m < columns; ++m) { v[m] = load(first_row + (4 * m + C) * stride); }
  if constexpr (levels > 2) { row_butterflies<0, levels - 2>(v); }
  TERSUM_UNROLL
  for (int m = 0; m < columns; ++m) {
    source.template fetch_beyond<Keep>(offset + (4 * m + C) * stride);
    // As many words as a row makes.
    if constexpr (Codec::lanes::bits >= 4) {
      fetch_beyond<true>(payload + (4 * m + C) * (width * Codec::lanes::bits / 32));
    }
    words const byte = (random[m / 4][m % 4] >> static_cast<std::uint32_t>(8 * C)) & 0xffu;
    words const field =
      shifted_code(codec.coder.quantizer, vector_value<floats>(v[m]), scale, byte).v;
    pack_row<Codec, C>(field, m, packed);
    finish(packed[(4 * m + C) / Codec::lanes::lanes]);
    if constexpr (Keep) {
      integers const code =
        (integers)((field >> code_shift<quantizer>)&0xffu) - quantizer::max_level;
      store(first_row + (4 * m + C) * stride, __builtin_convertvector(code, floats));
    }
  }
}

//! @brief Finishes the transform of one block of rows, rounds and packs it.
template <class Codec, bool Keep, class Source>
TERSUM_SIMD void encode_block(Codec const& codec,
                              dither_key const& key,
                              std::uint64_t chunk,
                              float scale,
                              Source const& source,
                              int block,
                              int part,
                              float* rows,
                              std::uint32_t* chunk_words)
{
  constexpr int size    = Codec::chunk_size;
  using shape           = rows_of<size>;
  using lanes           = typename Codec::lanes;
  using quantizer       = typename Codec::quantizer_type;
  using dither          = typename Codec::dither_type;
  constexpr int columns = shape::in_block / 4;             // rows k = c + 4 m
  constexpr int runs    = shape::in_block / lanes::lanes;  // words of one lane
  constexpr int levels  = Codec::rotates_chunks ? shape::wire_levels : 0;

  // Sixteen wire positions of a lane share a draw: rows 0 to 15, and 16 to 31.
  constexpr int draws = shape::in_block / 16;
  words random[extent(draws)][4];
  if constexpr (dither::rounds > 0) {
    words neighbour = lane_index() & 7u;
    if constexpr (width == 4) { neighbour += static_cast<std::uint32_t>(4 * part); }
    words place = neighbour * static_cast<std::uint32_t>(chunk_order<size>::rows / 16);
    if constexpr (shape::joined) {
      constexpr int upper = shape::halved ? 1 : shape::upper_block * chunk_order<size>::block / 16;
      place += (lane_index() >> 3) * static_cast<std::uint32_t>(upper);
    }
    std::uint64_t const first =
      chunk * (size / 16) + static_cast<unsigned>(block * (chunk_order<size>::block / 16));
    philox_block const counter = dither::counter(first, key);
    TERSUM_UNROLL
    for (int d = 0; d < draws; ++d) {
      random[d][0] = place + (counter.word[0] + static_cast<std::uint32_t>(d));
    }
    philox<dither::rounds>(counter, key.seed, random);
    TERSUM_UNROLL
    for (int d = 0; d < draws; ++d) {
      TERSUM_UNROLL
      for (int w = 0; w < 4; ++w) { random[d][w] ^= dither::mask(key); }
    }
  } else {
    TERSUM_UNROLL
    for (int d = 0; d < draws; ++d) {
      TERSUM_UNROLL
      for (int w = 0; w < 4; ++w) { random[d][w] = words{}; }
    }
  }

  float* const first_row = rows + shape::number(block, part, 0) * width;
  constexpr int stride   = shape::split * width;
  if constexpr (levels > 0) {
    TERSUM_UNROLL
    for (int m = 0; m < columns; ++m) {
      floats v[4];
      TERSUM_UNROLL
      for (int c = 0; c < 4; ++c) { v[c] = load(first_row + (4 * m + c) * stride); }
      row_butterflies<0, (levels < 2 ? levels : 2)>(v);
      TERSUM_UNROLL
      for (int c = 0; c < 4; ++c) { store(first_row + (4 * m + c) * stride, v[c]); }
    }
  }
  words packed[extent(runs)] = {};
  int const offset           = static_cast<int>(first_row - rows);
  // Blocks share the payload of their chunk in order, as far as prefetches are concerned.
  std::uint32_t const* const payload =
    chunk_words + (block * shape::split + part) * static_cast<int>(runs) * width;
  encode_rows<Codec, Keep, 0>(codec, scale, source, offset, first_row, random, payload, packed);
  encode_rows<Codec, Keep, 1>(codec, scale, source, offset, first_row, random, payload, packed);
  encode_rows<Codec, Keep, 2>(codec, scale, source, offset, first_row, random, payload, packed);
  encode_rows<Codec, Keep, 3>(codec, scale, source, offset, first_row, random, payload, packed);
  if constexpr (!Codec::reducer_type::biased) {
    constexpr std::uint32_t lift =
      lanes::ones * (lanes::limit + 1u - static_cast<std::uint32_t>(quantizer::max_level));
    TERSUM_UNROLL
    for (int r = 0; r < runs; ++r) { packed[r] = (packed[r] + lift) ^ lanes::signs; }
  }
  store_codes<size>(block, part, packed, chunk_words);
}

//! @brief Encodes one chunk. `own`, if it is not null, receives the codes as values, without their step.
template <class Codec, chunk_pointer From, class Source>
TERSUM_TARGET inline void encode_chunk(Codec const& codec,
                                       dither_key const& key,
                                       std::uint64_t sign_key,
                                       std::uint64_t chunk,
                                       float scale,
                                       From from,
                                       Source const& source,
                                       std::uint32_t* chunk_words,
                                       float* own)
{
  constexpr int size = Codec::chunk_size;
  using shape        = rows_of<size>;
  alignas(64) float rows[extent(size)];
  std::uint32_t signs[sign_room<size>];
  chunk_signs<size, Codec::rotates_chunks>(chunk, sign_key, signs);
  load_rows<size, Codec::rotates_chunks>(from, signs, rows);
  if (Codec::rotates_chunks) { middle_rows<size>(rows); }
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      encode_block<Codec, feeds_back<Codec>>(
        codec, key, chunk, scale, source, block, part, rows, chunk_words);
    }
  }
  // Done after the blocks, not in each: behind a comparison there compilers would move all that computes the codes, away
  // from where its operands were loaded.
  if (scale == 0.0f) { std::fill_n(chunk_words, size / Codec::lanes::lanes, Codec::zero_word); }
  if constexpr (feeds_back<Codec>) {
    if (Codec::rotates_chunks) {
      wire_rows<size, false>(rows, from);
      middle_rows<size>(rows);
    }
    store_rows<size, Codec::rotates_chunks>(own, signs, 1.0f, rows);
  }
}
