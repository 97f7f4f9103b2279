// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The norm of a chunk, the chunk to codes that are summed, and their sum to the mean, on one CPU thread, on top of chunk_rows.inl.

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
  return add_across<1, 16>(sums[0])[0];
}

typedef std::uint64_t longs __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));

//! @brief The products of the lower halves of 64-bit lanes.
TERSUM_SIMD longs multiply_lower(longs a, std::uint32_t b)
{
#if TERSUM_SIMD_WIDTH == 16
  // The masked form, with every lane chosen: the plain one of g++ 12 warns of its own undefined operand.
  return (longs)_mm512_maskz_mul_epu32(0xff, (__m512i)a, _mm512_set1_epi32(static_cast<int>(b)));
#elif TERSUM_SIMD_WIDTH == 8
  return (longs)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi32(static_cast<int>(b)));
#elif defined(__SSE2__)
  return (longs)_mm_mul_epu32((__m128i)a, _mm_set1_epi32(static_cast<int>(b)));
#else
  return (a & 0xffffffffu) * b;
#endif
}

//! @brief The lower halves of the 64-bit lanes of `evens`, between them those of `odds`.
TERSUM_SIMD words merge_lower(longs evens, longs odds)
{
#if TERSUM_SIMD_WIDTH == 16
  return (words)_mm512_mask_shuffle_epi32(
    (__m512i)evens, 0xaaaa, (__m512i)odds, static_cast<_MM_PERM_ENUM>(0xa0));
#else
  return (words)((evens & 0xffffffffu) | odds << 32);
#endif
}

//! @brief Philox4x32 in every lane of several vectors; lanes differ in the first counter word only, which out[.][0] brings.
//! Even and odd lanes take their rounds apart, each in the lower halves of 64-bit lanes; the upper halves are undefined.
template <int Rounds, std::size_t Draws>
TERSUM_SIMD void philox(philox_block const& counter, std::uint64_t key, words (&out)[Draws][4])
{
  constexpr int draws = static_cast<int>(Draws);
  using constants     = philox_constants;
  longs k0            = (longs)broadcast(static_cast<std::uint32_t>(key));
  longs k1            = (longs)broadcast(static_cast<std::uint32_t>(key >> 32));
  longs state[Draws][2][4];
  TERSUM_UNROLL
  for (int d = 0; d < draws; ++d) {
    TERSUM_UNROLL
    for (int odd = 0; odd < 2; ++odd) {
      state[d][odd][0] = (longs)out[d][0] >> (32 * odd);
      TERSUM_UNROLL
      for (int w = 1; w < 4; ++w) { state[d][odd][w] = (longs)broadcast(counter.word[w]); }
    }
  }
  TERSUM_UNROLL
  for (int round = 0; round < Rounds; ++round) {
    TERSUM_UNROLL
    for (int d = 0; d < draws; ++d) {
      TERSUM_UNROLL
      for (int odd = 0; odd < 2; ++odd) {
        longs(&c)[4]   = state[d][odd];
        longs const p0 = multiply_lower(c[0], constants::multiplier_0);
        longs const p1 = multiply_lower(c[2], constants::multiplier_1);
        c[0]           = (p1 >> 32) ^ c[1] ^ k0;
        c[1]           = p1;
        c[2]           = (p0 >> 32) ^ c[3] ^ k1;
        c[3]           = p0;
      }
    }
    k0 = (longs)((words)k0 + constants::weyl_0);
    k1 = (longs)((words)k1 + constants::weyl_1);
  }
  TERSUM_UNROLL
  for (int d = 0; d < draws; ++d) {
    TERSUM_UNROLL
    for (int w = 0; w < 4; ++w) { out[d][w] = merge_lower(state[d][0][w], state[d][1][w]); }
  }
}

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
  row_butterflies<0, levels - 2>(v);
  TERSUM_UNROLL
  for (int m = 0; m < columns; ++m) {
    source.template fetch_beyond<Keep>(offset + (4 * m + C) * stride);
    // As many words as a row makes.
    if (Codec::lanes::bits >= 4) {
      fetch_beyond<true>(payload + (4 * m + C) * (width * Codec::lanes::bits / 32));
    }
    words const byte = (random[m / 4][m % 4] >> static_cast<std::uint32_t>(8 * C)) & 0xffu;
    words const field =
      shifted_code(codec.coder.quantizer, vector_value<floats>(v[m]), scale, byte).v;
    pack_row<Codec, C>(field, m, packed);
    finish(packed[(4 * m + C) / Codec::lanes::lanes]);
    if (Keep) {
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
  constexpr int size   = Codec::chunk_size;
  using shape          = rows_of<size>;
  using lanes          = typename Codec::lanes;
  using quantizer      = typename Codec::quantizer_type;
  using dither         = typename Codec::dither_type;
  constexpr int runs   = shape::in_block / lanes::lanes;  // words of one lane
  constexpr int levels = Codec::rotates_chunks ? shape::wire_levels : 0;

  // Sixteen wire positions of a lane share a draw: rows 0 to 15, and 16 to 31.
  constexpr int draws            = shape::in_block / 16;
  words random[extent(draws)][4] = {};
  if constexpr (dither::rounds > 0) {
    words neighbour = lane_index() & 7u;
    if (width == 4) { neighbour += static_cast<std::uint32_t>(4 * part); }
    words place = neighbour * static_cast<std::uint32_t>(chunk_order<size>::rows / 16);
    if (shape::joined) {
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
  }

  float* const first_row = rows + first_row_of<size>(block, part);
  butterflies_of_rows<size, 0, minimum(levels, 2), false>(first_row, first_row);
  words packed[extent(runs)] = {};
  int const offset           = static_cast<int>(first_row - rows);
  // Blocks share the payload of their chunk in order, as far as prefetches are concerned.
  std::uint32_t const* const payload =
    chunk_words + (block * shape::split + part) * static_cast<int>(runs) * width;
  encode_rows<Codec, Keep, 0>(codec, scale, source, offset, first_row, random, payload, packed);
  encode_rows<Codec, Keep, 1>(codec, scale, source, offset, first_row, random, payload, packed);
  encode_rows<Codec, Keep, 2>(codec, scale, source, offset, first_row, random, payload, packed);
  encode_rows<Codec, Keep, 3>(codec, scale, source, offset, first_row, random, payload, packed);
  if (!Codec::reducer_type::biased) {
    constexpr std::uint32_t lift =
      lanes::ones * (lanes::limit + 1u - static_cast<std::uint32_t>(quantizer::max_level));
    TERSUM_UNROLL
    for (int r = 0; r < runs; ++r) { packed[r] = (packed[r] + lift) ^ lanes::signs; }
  }
  move_codes<size, true>(block, part, packed, chunk_words);
}

//! @brief Encodes one chunk. `own`, if it is not null, receives the codes as values, without their step.
template <class Codec, chunk_pointer From, class Source, class Own>
TERSUM_TARGET inline void encode_chunk(Codec const& codec,
                                       dither_key const& key,
                                       std::uint64_t sign_key,
                                       std::uint64_t chunk,
                                       float scale,
                                       From from,
                                       Source const& source,
                                       std::uint32_t* chunk_words,
                                       Own own)
{
  constexpr int size   = Codec::chunk_size;
  constexpr bool keeps = std::is_pointer_v<Own>;
  using shape          = rows_of<size>;
  alignas(64) float rows[extent(size)];
  std::uint32_t signs[sign_room<size>];
  chunk_signs<size, Codec::rotates_chunks>(chunk, sign_key, signs);
  load_rows<size, Codec::rotates_chunks>(from, signs, rows);
  if (Codec::rotates_chunks) { middle_rows<size>(rows); }
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      encode_block<Codec, keeps>(codec, key, chunk, scale, source, block, part, rows, chunk_words);
    }
  }
  // Done after the blocks, not in each: behind a comparison there compilers would move all that computes the codes, away
  // from where its operands were loaded.
  if (scale == 0.0f) { std::fill_n(chunk_words, size / Codec::lanes::lanes, Codec::zero_word); }
  if constexpr (keeps) {
    if (Codec::rotates_chunks) {
      wire_rows<size, false>(rows, from);
      middle_rows<size>(rows);
    }
    store_rows<size, Codec::rotates_chunks>(own, signs, 1.0f, rows);
  }
}

//! @brief The sum of all lanes.
TERSUM_SIMD std::uint32_t sum_lanes(words v)
{
  std::uint32_t sum = 0;
  TERSUM_UNROLL
  for (int lane = 0; lane < width; ++lane) { sum += v[lane]; }
  return sum;
}

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
                              words& saturated,
                              words& square_sums)
{
  constexpr int size    = Codec::chunk_size;
  using shape           = rows_of<size>;
  using lanes           = typename Codec::lanes;
  constexpr int columns = shape::in_block / 4;
  constexpr int runs    = shape::in_block / lanes::lanes;
  constexpr int levels  = Codec::rotates_chunks ? shape::wire_levels : 0;
  constexpr int stride  = shape::split * width;

  typedef signed char byte_lanes __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));

  words packed[extent(runs)];
  move_codes<size, false>(block, part, packed, chunk_words);

  float* const first_row = rows + first_row_of<size>(block, part);
  floats squares         = {};
  integers limits        = {};
  byte_lanes byte_limits = {};  // at most columns, which four of them come to 255 at most
  TERSUM_UNROLL
  for (int m = 0; m < columns; ++m) {
    floats v[4];
    if constexpr (saturates<Codec> && lanes::bits == 8) {
      auto const codes = (byte_lanes)packed[m % runs];
      byte_limits -= (byte_lanes)(codes >= lanes::limit) + (byte_lanes)(codes <= -lanes::limit);
    }
    TERSUM_UNROLL
    for (int c = 0; c < 4; ++c) {
      int const k      = 4 * m + c;
      words const word = packed[k / lanes::lanes];
      integers code;
      if (Codec::reducer_type::biased) {
        code = (integers)((word >> static_cast<std::uint32_t>(lanes::bits * (k % lanes::lanes))) &
                          lanes::full) -
               world * Codec::quantizer_type::max_level;
      } else {
        code = (integers)(word << static_cast<std::uint32_t>(32 - lanes::bits *
                                                                    (k % lanes::lanes + 1))) >>
               (32 - lanes::bits);
      }
      v[c] = __builtin_convertvector(code, floats);
      if (saturates<Codec> && lanes::bits != 8) {
        limits -= (integers)(code >= lanes::limit) + (integers)(code <= -lanes::limit);
      }
      if (tracks<Codec>) { squares = squares + v[c] * v[c]; }  // integers below 2^24: exact
    }
    row_butterflies<0, minimum(levels, 2)>(v);
    TERSUM_UNROLL
    for (int c = 0; c < 4; ++c) {
      To const at = to + (static_cast<int>(first_row - rows) + (4 * m + c) * stride);
      if (levels == 0 && !shape::joined) {
        if (begins_line<To>((4 * m + c) * stride)) {
          fetch_beyond<true, tuning{}.cpu.write_ahead * 3 / 2>(at);
        }
        store_values(at, within_range<typename stored_element<To>::type>(v[c] * broadcast(scale)));
      } else {
        if (begins_line<To>((4 * m + c) * stride)) { fetch_beyond<true>(at); }
        store(first_row + (4 * m + c) * stride, v[c]);
      }
    }
  }
  if constexpr (levels > 2) { butterflies_of_rows<size, 2, levels, false>(first_row, first_row); }
  saturated += (words)limits + ((words)byte_limits * 0x01010101u >> 24u);
  square_sums += (words) __builtin_convertvector(squares, integers);
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
  words saturated = {}, square_sums = {};
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      decode_block<Codec>(world, block, part, scale, chunk_words, to, rows, saturated, square_sums);
    }
  }
  if (Codec::rotates_chunks) { middle_rows<size>(rows); }
  if (Codec::rotates_chunks || shape::joined) {
    store_rows<size, Codec::rotates_chunks>(to, signs, scale, rows);
  }
  if (saturates<Codec>) { step.saturated = sum_lanes(saturated); }
  if (tracks<Codec>) { step.square_sum = sum_lanes(square_sums); }
}
