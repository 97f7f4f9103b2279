// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One chunk on one CPU thread: norms, encode, decode, with the vectors of vector_target.ipp. The arrangement:
//!
//! A *row* is one vector. Its lanes hold 8 neighbouring coordinates (4 of them in vectors of 4; 16-lane vectors hold 8
//! of a quarter of the chunk and the 8 across from them in the next quarter), so that all butterflies but the first
//! three are between rows, and every lane packs whole wire words of its own.

#include <tersum/execute/cpu/vector_target.ipp>

//! @brief The rows of a chunk of `Size` coordinates.
template <int Size>
struct rows_of {
  static constexpr int log     = log2_exact(Size);
  static constexpr bool joined = width == 16;         //!< Lanes 8 to 15 are a quarter further.
  static constexpr int split   = width == 4 ? 2 : 1;  //!< Vectors that make up 8 neighbours.
  static constexpr int count   = Size / width;        //!< Rows.
  static constexpr int in_block =
    chunk_order<Size>::rows;  //!< Groups of 8 neighbours in a transposed block.
  static constexpr int wire_levels = log < 10 ? log - 5 : 5;  //!< As in block_hadamard.
  static constexpr int middle_end  = log - 2;  //!< Index bits 8 .. middle_end-1 come before.
  static constexpr int blocks =
    Size / chunk_order<Size>::block / (joined ? 2 : 1);  //!< Row blocks.

  //! The number of the 256-block on the wire that row block a holds in its first eight lanes.
  static constexpr int wire_block(int a) noexcept
  {
    if constexpr (joined) {
      constexpr int low = log - 10;  // bits of a below the joined one
      return (a & ((1 << low) - 1)) | (a >> low) << (low + 1);
    }
    return a;
  }

  //! The distance, in wire blocks, to the one in the upper eight lanes.
  static constexpr int upper_block = joined ? 1 << (log - 10) : 0;
};

//! @brief Butterflies over the bits First .. Last-1 of the index of an array of vectors, ascending.
template <int First, int Last, int Count>
TERSUM_SIMD void row_butterflies(floats (&v)[Count])
{
  TERSUM_UNROLL
  for (int level = First; level < Last; ++level) {
    TERSUM_UNROLL
    for (int i = 0; i < Count; ++i) {
      if ((i >> level & 1) == 0) {
        floats const a    = v[i];
        floats const b    = v[i | 1 << level];
        v[i]              = a + b;
        v[i | 1 << level] = a - b;
      }
    }
  }
}

//! @brief One butterfly between neighbouring lanes: the upper one of a pair keeps the difference.
template <int Bit>
TERSUM_SIMD floats lane_butterfly(floats v)
{
  // Which form is faster is a matter of measurement: the product for 8 lanes, the flipped sign for 16.
  auto const upper = (lane_index() & static_cast<std::uint32_t>(Bit)) != 0;
  if constexpr (width == 8) {
    return fma(v, upper ? broadcast(-1.0f) : broadcast(1.0f), exchange<Bit>(v));
  } else {
    words const flip = upper ? broadcast(0x80000000u) : broadcast(0u);
    return exchange<Bit>(v) + from_bits(to_bits(v) ^ flip);
  }
}

//! @brief The first three butterflies of eight neighbours: one vector, half of one, or two.
template <int Split>
TERSUM_SIMD void neighbour_butterflies(floats (&v)[Split])
{
  TERSUM_UNROLL
  for (int s = 0; s < Split; ++s) { v[s] = lane_butterfly<2>(lane_butterfly<1>(v[s])); }
  if constexpr (Split == 2) {
    floats const a = v[0];
    floats const b = v[1];
    v[0]           = a + b;
    v[1]           = a - b;
  } else {
    v[0] = lane_butterfly<4>(v[0]);
  }
}

TERSUM_SIMD words mix(words h)
{
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  return h ^ (h >> 16);
}

//! Room for the sign words of a chunk, in whole vectors.
template <int Size>
inline constexpr int sign_room = Size / 32 < width ? width : Size / 32;

//! @brief The sign words of a chunk, as `sign_bits` defines them.
template <int Size>
TERSUM_SIMD void chunk_signs(std::uint64_t chunk,
                             std::uint64_t key,
                             std::uint32_t (&out)[sign_room<Size>])
{
  // A chunk's words share the upper half of their number.
  std::uint64_t const first = chunk * (Size / 32);
  std::uint32_t const high =
    mix32(static_cast<std::uint32_t>(first >> 32) ^ static_cast<std::uint32_t>(key >> 32));
  for (int i = 0; i < Size / 32; i += width) {
    words const number =
      lane_index() + static_cast<std::uint32_t>(first + static_cast<unsigned>(i));
    store(out + i, mix(mix(number ^ static_cast<std::uint32_t>(key)) + high));
  }
}

//! @brief Sign masks (bit 31) of one vector: part `part` of the eight neighbours of a group in quarter `quarter`, or, in
//! vectors of 16, of two groups.
TERSUM_SIMD words sign_mask(std::uint32_t const* signs, int group, int quarter, int part)
{
  words bits;
  if constexpr (width == 16) {
    bits = lane_index() < 8u ? broadcast(signs[group]) : broadcast(signs[group + 1]);
  } else {
    bits = broadcast(signs[group]);
  }
  words const place = (lane_index() & 7u) + static_cast<std::uint32_t>(4 * part + 8 * quarter);
  return (bits << (31u - place)) & 0x80000000u;
}

//! @brief Gradient order to rows: signs, then the butterflies of index bits 0, 1, 2 and the two highest.
template <int Size, bool Rotate, class Element>
TERSUM_SIMD void load_rows(Element const* from, std::uint32_t const* signs, float* rows)
{
  using shape           = rows_of<Size>;
  constexpr int quarter = Size / 4;
  constexpr int step    = width == 16 ? 16 : 8;
  for (int o = 0; o < quarter; o += step) {
    floats v[shape::split][4];
    TERSUM_UNROLL
    for (int q = 0; q < 4; ++q) {
      floats eight[shape::split];
      TERSUM_UNROLL
      for (int s = 0; s < shape::split; ++s) {
        eight[s] = load_values(from + q * quarter + o + s * width);
        if constexpr (Rotate) {
          eight[s] = from_bits(to_bits(eight[s]) ^ sign_mask(signs, o / 8, q, s));
        }
      }
      if constexpr (Rotate) { neighbour_butterflies(eight); }
      TERSUM_UNROLL
      for (int s = 0; s < shape::split; ++s) { v[s][q] = eight[s]; }
    }
    TERSUM_UNROLL
    for (int s = 0; s < shape::split; ++s) {
      if constexpr (Rotate) { row_butterflies<0, 2>(v[s]); }
      if constexpr (shape::joined) {
        // Groups o and o+8 of quarters 0 and 1, then of 2 and 3.
        store(rows + 2 * o, join_halves<0>(v[s][0], v[s][1]));
        store(rows + 2 * o + 16, join_halves<1>(v[s][0], v[s][1]));
        store(rows + 2 * (quarter + o), join_halves<0>(v[s][2], v[s][3]));
        store(rows + 2 * (quarter + o) + 16, join_halves<1>(v[s][2], v[s][3]));
      } else {
        TERSUM_UNROLL
        for (int q = 0; q < 4; ++q) { store(rows + q * quarter + o + s * width, v[s][q]); }
      }
    }
  }
}

//! @brief Rows to gradient order: the butterflies of index bits 0, 1, 2 and the two highest, signs, scaling.
template <int Size, bool Rotate, class Element>
TERSUM_SIMD void store_rows(Element* to, std::uint32_t const* signs, float scale, float const* rows)
{
  using shape           = rows_of<Size>;
  constexpr int quarter = Size / 4;
  constexpr int step    = width == 16 ? 16 : 8;
  for (int o = 0; o < quarter; o += step) {
    floats v[shape::split][4];
    TERSUM_UNROLL
    for (int q = 0; q < 4; ++q) {
      floats eight[shape::split];
      TERSUM_UNROLL
      for (int s = 0; s < shape::split; ++s) {
        if constexpr (shape::joined) {
          float const* const pair = rows + 2 * (q / 2 * quarter + o);
          if (q % 2 == 0) {
            eight[s] = join_halves<0>(load(pair), load(pair + 16));
          } else {
            eight[s] = join_halves<1>(load(pair), load(pair + 16));
          }
        } else {
          eight[s] = load(rows + q * quarter + o + s * width);
        }
      }
      if constexpr (Rotate) { neighbour_butterflies(eight); }
      TERSUM_UNROLL
      for (int s = 0; s < shape::split; ++s) { v[s][q] = eight[s]; }
    }
    TERSUM_UNROLL
    for (int s = 0; s < shape::split; ++s) {
      if constexpr (Rotate) { row_butterflies<0, 2>(v[s]); }
      TERSUM_UNROLL
      for (int q = 0; q < 4; ++q) {
        floats factor = broadcast(scale);
        if constexpr (Rotate) {
          factor = from_bits(to_bits(factor) ^ sign_mask(signs, o / 8, q, s));
        }
        store_values(to + q * quarter + o + s * width, v[s][q] * factor);
      }
    }
  }
}

//! @brief The butterflies of index bits 8 and above, but for the two highest.
template <int Size>
TERSUM_SIMD void middle_rows(float* rows)
{
  using shape = rows_of<Size>;
  for (int bit = 8; bit < shape::middle_end; ++bit) {
    int const stride = (1 << (bit - 3)) * shape::split;  // rows
    for (int base = 0; base < shape::count; base += 2 * stride) {
      for (int row = base; row < base + stride; ++row) {
        floats const a = load(rows + row * width);
        floats const b = load(rows + (row + stride) * width);
        store(rows + row * width, a + b);
        store(rows + (row + stride) * width, a - b);
      }
    }
  }
}

//! @brief Array of vectors to one sequence in which lane 0 of each comes first, then lane 1 of each.
template <int Count>
TERSUM_SIMD void zip(words (&v)[Count])
{
  TERSUM_UNROLL
  for (int stage = 1; stage < Count; stage *= 2) {
    words mixed[Count];
    TERSUM_UNROLL
    for (int i = 0; i < Count / 2; ++i) {
      mixed[2 * i]     = interleave<0>(v[i], v[i + Count / 2]);
      mixed[2 * i + 1] = interleave<1>(v[i], v[i + Count / 2]);
    }
    TERSUM_UNROLL
    for (int i = 0; i < Count; ++i) { v[i] = mixed[i]; }
  }
}

//! @brief Undoes `zip`.
template <int Count>
TERSUM_SIMD void unzip(words (&v)[Count])
{
  TERSUM_UNROLL
  for (int stage = 1; stage < Count; stage *= 2) {
    words mixed[Count];
    TERSUM_UNROLL
    for (int i = 0; i < Count / 2; ++i) {
      mixed[i]             = even(v[2 * i], v[2 * i + 1]);
      mixed[i + Count / 2] = odd(v[2 * i], v[2 * i + 1]);
    }
    TERSUM_UNROLL
    for (int i = 0; i < Count; ++i) { v[i] = mixed[i]; }
  }
}

//! @brief Rounds one row. A lane holds code + max_level in the eight bits from `code_shift` on; the others are undefined.
//! `random` holds the bytes in its low bits.
template <class Quantizer>
TERSUM_SIMD words round_row(Quantizer const& quantizer, floats v, float scale, words random)
{
  constexpr int limit = Quantizer::max_level;
  if constexpr (requires { Quantizer::rounds_to_grid; }) {
    // As round_to_grid. The constant has zeros where the code lies, so that it need not be subtracted.
    constexpr int unit          = 1 << Quantizer::fraction_bits;
    constexpr std::uint32_t low = 0x4b400000;
    integers const sum          = (integers)(rounded_bits<limit * unit>(v, scale) + random);
    integers const top          = (integers)broadcast(low + 2 * limit * unit + unit - 1);
    integers const bottom       = (integers)broadcast(low);
    integers const bounded      = sum < top ? sum : top;
    return (words)(bounded > bottom ? bounded : bottom);
  } else if constexpr (requires { typename Quantizer::table; }) {
    // As lookup_quantizer::encode.
    using table            = typename Quantizer::table;
    constexpr int half     = table::count / 2;
    floats const size      = from_bits(to_bits(v) & 0x7fffffffu);
    integers const beyond  = (integers)(rounded_bits<256 * limit>(size, scale) - 0x4b400000u);
    integers const highest = (integers)broadcast(512u * limit);
    integers const x       = beyond < highest ? beyond : highest;
    integers low           = integers{} + table::value[half - 1];
    integers gap           = integers{} + 2 * (limit - table::value[half - 1]);
    TERSUM_UNROLL
    for (int k = half; k + 1 < table::count; ++k) {
      integers const above = x >= 256 * table::value[k];
      low += above & (table::value[k] - table::value[k - 1]);
      gap += above & (table::value[k + 1] - 2 * table::value[k] + table::value[k - 1]);
    }
    integers const up   = ((integers)random * 2 + 1) * gap < 2 * x - 512 * low;
    integers const code = low + (up & gap) - limit;
    integers const sign = (integers)to_bits(v) >> 31;
    return (words)((code ^ sign) - sign + limit) << code_shift<Quantizer>;
  } else {
    words codes;
    for (int lane = 0; lane < width; ++lane) {
      codes[lane] =
        static_cast<std::uint32_t>(quantizer.encode(v[lane], scale, random[lane]) + limit)
        << code_shift<Quantizer>;
    }
    return codes;
  }
}

//! @brief Where the words of one lane group of a block go.
template <class Codec>
TERSUM_SIMD std::uint32_t* block_words(std::uint32_t* chunk_words, int wire_block, int part)
{
  constexpr int block_size = chunk_order<Codec::chunk_size>::block / Codec::lanes::lanes;
  return chunk_words + wire_block * block_size + part * (block_size / 2);
}

//! @brief Puts the codes of row k = 4 m + C into their lanes.
template <class Codec, int C, int Runs>
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

//! @brief The last butterflies of the rows c, c + 4, c + 8 ... of a block, their codes, and where those go.
template <class Codec, bool Keep, int C, int Draws, int Runs>
TERSUM_SIMD void encode_rows(Codec const& codec,
                             float scale,
                             float* first_row,
                             words const (&random)[Draws][4],
                             words (&packed)[Runs])
{
  using shape           = rows_of<Codec::chunk_size>;
  using quantizer       = typename Codec::quantizer_type;
  constexpr int columns = shape::in_block / 4;
  constexpr int stride  = shape::split * width;
  constexpr int levels  = Codec::rotates_chunks ? shape::wire_levels : 0;
  floats v[columns];
  TERSUM_UNROLL
  for (int m = 0; m < columns; ++m) { v[m] = load(first_row + (4 * m + C) * stride); }
  if constexpr (levels > 2) { row_butterflies<0, levels - 2>(v); }
  TERSUM_UNROLL
  for (int m = 0; m < columns; ++m) {
    words const byte  = (random[m / 4][m % 4] >> static_cast<std::uint32_t>(8 * C)) & 0xffu;
    words const field = round_row(codec.quantizer, v[m], scale, byte);
    pack_row<Codec, C>(field, m, packed);
    if constexpr (Keep) {
      integers const code =
        (integers)((field >> code_shift<quantizer>)&0xffu) - quantizer::max_level;
      store(first_row + (4 * m + C) * stride, __builtin_convertvector(code, floats));
    }
  }
}

//! @brief Finishes the transform of one block of rows, rounds and packs it.
template <class Codec, bool Keep>
TERSUM_SIMD void encode_block(Codec const& codec,
                              dither_key const& key,
                              std::uint64_t chunk,
                              float scale,
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
  words random[draws][4];
  if constexpr (dither::rounds > 0) {
    words neighbour = lane_index() & 7u;
    if constexpr (width == 4) { neighbour += static_cast<std::uint32_t>(4 * part); }
    words place = neighbour * static_cast<std::uint32_t>(draws);
    if constexpr (shape::joined) {
      place += (lane_index() >> 3) *
               static_cast<std::uint32_t>(shape::upper_block * chunk_order<size>::block / 16);
    }
    std::uint64_t const first =
      chunk * (size / 16) +
      static_cast<unsigned>(shape::wire_block(block) * (chunk_order<size>::block / 16));
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

  float* const first_row = rows + (block * shape::in_block * shape::split + part) * width;
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
  words packed[runs] = {};
  encode_rows<Codec, Keep, 0>(codec, scale, first_row, random, packed);
  encode_rows<Codec, Keep, 1>(codec, scale, first_row, random, packed);
  encode_rows<Codec, Keep, 2>(codec, scale, first_row, random, packed);
  encode_rows<Codec, Keep, 3>(codec, scale, first_row, random, packed);
  if constexpr (!Codec::reducer_type::biased) {
    constexpr std::uint32_t lift =
      lanes::ones * static_cast<std::uint32_t>(lanes::limit + 1 - quantizer::max_level);
    TERSUM_UNROLL
    for (int r = 0; r < runs; ++r) { packed[r] = (packed[r] + lift) ^ lanes::signs; }
  }
  if (scale == 0.0f) {
    TERSUM_UNROLL
    for (int r = 0; r < runs; ++r) { packed[r] = broadcast(Codec::zero_word); }
  }
  zip(packed);
  int const at = shape::wire_block(block);
  TERSUM_UNROLL
  for (int r = 0; r < runs; ++r) {
    if constexpr (shape::joined && runs == 1) {
      // One vector holds the words of two wire blocks.
      alignas(64) std::uint32_t both[width];
      store(both, packed[0]);
      __builtin_memcpy(block_words<Codec>(chunk_words, at, 0), both, sizeof(both) / 2);
      __builtin_memcpy(block_words<Codec>(chunk_words, at + shape::upper_block, 0),
                       both + width / 2,
                       sizeof(both) / 2);
    } else if constexpr (shape::joined) {
      int const upper = r / (runs / 2);
      store(block_words<Codec>(chunk_words, at + upper * shape::upper_block, 0) +
              (r % (runs / 2)) * width,
            packed[r]);
    } else {
      store(block_words<Codec>(chunk_words, at, part) + r * width, packed[r]);
    }
  }
}

//! @brief What decoding a chunk reveals of its codes.
struct decoded_counts {
  std::uint64_t square_sum = 0;
  std::uint64_t at_limit   = 0;
};

//! @brief Unpacks one block of rows and begins the inverse transform.
template <class Codec>
TERSUM_SIMD void decode_block(int world,
                              int block,
                              int part,
                              std::uint32_t const* chunk_words,
                              float* rows,
                              decoded_counts& counts)
{
  constexpr int size    = Codec::chunk_size;
  using shape           = rows_of<size>;
  using lanes           = typename Codec::lanes;
  constexpr int columns = shape::in_block / 4;
  constexpr int runs    = shape::in_block / lanes::lanes;
  constexpr int levels  = Codec::rotates_chunks ? shape::wire_levels : 0;
  constexpr int stride  = shape::split * width;

  words packed[runs];
  int const at              = shape::wire_block(block);
  std::uint32_t* const from = const_cast<std::uint32_t*>(chunk_words);
  TERSUM_UNROLL
  for (int r = 0; r < runs; ++r) {
    if constexpr (shape::joined && runs == 1) {
      alignas(64) std::uint32_t both[width];
      __builtin_memcpy(both, block_words<Codec>(from, at, 0), sizeof(both) / 2);
      __builtin_memcpy(
        both + width / 2, block_words<Codec>(from, at + shape::upper_block, 0), sizeof(both) / 2);
      packed[r] = load_words(both);
    } else if constexpr (shape::joined) {
      int const upper = r / (runs / 2);
      packed[r]       = load_words(block_words<Codec>(from, at + upper * shape::upper_block, 0) +
                             (r % (runs / 2)) * width);
    } else {
      packed[r] = load_words(block_words<Codec>(from, at, part) + r * width);
    }
  }
  unzip(packed);

  float* const first_row = rows + (block * shape::in_block * shape::split + part) * width;
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
      if constexpr (Codec::saturates) {
        limits -= (integers)(code >= lanes::limit) + (integers)(code <= -lanes::limit);
        if constexpr (Codec::tracks) {
          squares = squares + v[c] * v[c];
        }  // integers below 2^24: exact
      }
    }
    if constexpr (levels > 0) { row_butterflies<0, (levels < 2 ? levels : 2)>(v); }
    TERSUM_UNROLL
    for (int c = 0; c < 4; ++c) { store(first_row + (4 * m + c) * stride, v[c]); }
  }
  if constexpr (levels > 2) {
    TERSUM_UNROLL
    for (int c = 0; c < 4; ++c) {
      floats v[columns];
      TERSUM_UNROLL
      for (int m = 0; m < columns; ++m) { v[m] = load(first_row + (4 * m + c) * stride); }
      row_butterflies<0, levels - 2>(v);
      TERSUM_UNROLL
      for (int m = 0; m < columns; ++m) { store(first_row + (4 * m + c) * stride, v[m]); }
    }
  }
  if constexpr (Codec::saturates) {
    for (int lane = 0; lane < width; ++lane) {
      counts.at_limit += static_cast<std::uint32_t>(limits[lane]);
      counts.square_sum += static_cast<std::uint64_t>(squares[lane]);
    }
  }
}

//! @brief The inverse of a chunk's transform, from the wire order of butterflies on.
template <class Codec>
TERSUM_SIMD void invert_rows(float* rows)
{
  if constexpr (Codec::rotates_chunks) { middle_rows<Codec::chunk_size>(rows); }
}

//! @brief Adds neighbours among the lanes of `Count` vectors until one vector is left.
template <int Count, int Room>
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
template <int Size, class Element>
TERSUM_SIMD float norm_of(Element const* from)
{
  constexpr int vectors = (Size < 256 ? Size : 256) / width;
  floats sums[vectors];
  TERSUM_UNROLL
  for (int i = 0; i < vectors; ++i) {
    floats const v = load_values(from + i * width);
    sums[i]        = fma(v, v, floats{});
  }
  for (int block = 256; block < Size; block += 256) {
    TERSUM_UNROLL
    for (int i = 0; i < vectors; ++i) {
      floats const v = load_values(from + block + i * width);
      sums[i]        = fma(v, v, sums[i]);
    }
  }
  add_pairs<vectors>(sums);
  float pairs[width];
  store(pairs, sums[0]);
  for (int count = width; count > 1; count /= 2) {
    for (int i = 0; i < count / 2; ++i) { pairs[i] = pairs[2 * i] + pairs[2 * i + 1]; }
  }
  return pairs[0];
}

//! @brief A whole chunk to rows, all butterflies but those of the wire blocks.
template <class Codec, class Element>
TERSUM_SIMD void rotate_rows(Element const* from, std::uint32_t const* signs, float* rows)
{
  load_rows<Codec::chunk_size, Codec::rotates_chunks>(from, signs, rows);
  if constexpr (Codec::rotates_chunks) { middle_rows<Codec::chunk_size>(rows); }
}

//! @brief One chunk to codes; `own`, when asked for, receives the unscaled decoded values of those codes.
template <class Codec, class Element>
TERSUM_TARGET inline void encode_chunk(Codec const& codec,
                                       dither_key const& key,
                                       std::uint64_t sign_key,
                                       std::uint64_t chunk,
                                       float scale,
                                       Element const* from,
                                       std::uint32_t* chunk_words,
                                       float* own)
{
  constexpr int size = Codec::chunk_size;
  using shape        = rows_of<size>;
  alignas(64) float rows[size];
  std::uint32_t signs[sign_room<size>];
  if constexpr (Codec::rotates_chunks) { chunk_signs<size>(chunk, sign_key, signs); }
  rotate_rows<Codec>(from, signs, rows);
  for (int block = 0; block < shape::blocks; ++block) {
    TERSUM_UNROLL
    for (int part = 0; part < shape::split; ++part) {
      encode_block<Codec, Codec::feeds_back>(
        codec, key, chunk, scale, block, part, rows, chunk_words);
    }
  }
  if constexpr (Codec::feeds_back) {
    constexpr int levels = Codec::rotates_chunks ? shape::wire_levels : 0;
    constexpr int stride = shape::split * width;
    for (int start = 0; levels > 0 && start < shape::count * width;
         start += shape::in_block * stride) {
      for (int part = 0; part < shape::split; ++part) {
        floats v[shape::in_block];
        TERSUM_UNROLL
        for (int k = 0; k < shape::in_block; ++k) {
          v[k] = load(rows + start + part * width + k * stride);
        }
        row_butterflies<0, levels>(v);
        TERSUM_UNROLL
        for (int k = 0; k < shape::in_block; ++k) {
          store(rows + start + part * width + k * stride, v[k]);
        }
      }
    }
    invert_rows<Codec>(rows);
    store_rows<size, Codec::rotates_chunks>(own, signs, 1.0f, rows);
  }
}

//! @brief One chunk of summed codes to the mean.
template <class Codec, class Element>
TERSUM_TARGET inline void decode_chunk(int world,
                                       std::uint64_t sign_key,
                                       std::uint64_t chunk,
                                       float scale,
                                       std::uint32_t const* chunk_words,
                                       Element* to,
                                       chunk_step& step)
{
  constexpr int size = Codec::chunk_size;
  using shape        = rows_of<size>;
  alignas(64) float rows[size];
  std::uint32_t signs[sign_room<size>];
  if constexpr (Codec::rotates_chunks) { chunk_signs<size>(chunk, sign_key, signs); }
  decoded_counts counts;
  for (int block = 0; block < shape::blocks; ++block) {
    TERSUM_UNROLL
    for (int part = 0; part < shape::split; ++part) {
      decode_block<Codec>(world, block, part, chunk_words, rows, counts);
    }
  }
  invert_rows<Codec>(rows);
  store_rows<size, Codec::rotates_chunks>(to, signs, scale, rows);
  if constexpr (Codec::saturates) {
    step.saturated = static_cast<std::uint32_t>(counts.at_limit);
    if constexpr (Codec::tracks) {
      step.square_sum = static_cast<std::uint32_t>(counts.square_sum);
    }
  }
}

//! @brief The squared norm of one chunk.
template <int Size, class Element>
TERSUM_TARGET inline float square_norm(Element const* from)
{
  return norm_of<Size>(from);
}

//! @brief The bits of the largest magnitude of one rotated chunk, unnormalized; NaN is above infinity.
template <class Codec, class Element>
TERSUM_TARGET inline std::uint32_t largest_magnitude(std::uint64_t sign_key,
                                                     std::uint64_t chunk,
                                                     Element const* from)
{
  constexpr int size = Codec::chunk_size;
  using shape        = rows_of<size>;
  alignas(64) float rows[size];
  std::uint32_t signs[sign_room<size>];
  if constexpr (Codec::rotates_chunks) { chunk_signs<size>(chunk, sign_key, signs); }
  rotate_rows<Codec>(from, signs, rows);
  constexpr int levels = Codec::rotates_chunks ? shape::wire_levels : 0;
  constexpr int stride = shape::split * width;
  integers largest     = {};
  for (int start = 0; start < shape::count * width; start += shape::in_block * stride) {
    for (int part = 0; part < shape::split; ++part) {
      floats v[shape::in_block];
      TERSUM_UNROLL
      for (int k = 0; k < shape::in_block; ++k) {
        v[k] = load(rows + start + part * width + k * stride);
      }
      row_butterflies<0, levels>(v);
      TERSUM_UNROLL
      for (int k = 0; k < shape::in_block; ++k) {
        integers const size_of = (integers)(to_bits(v[k]) & 0x7fffffffu);
        largest                = size_of > largest ? size_of : largest;
      }
    }
  }
  std::int32_t result = 0;
  for (int lane = 0; lane < width; ++lane) { result = maximum(result, largest[lane]); }
  return static_cast<std::uint32_t>(result);
}

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

//! @brief The butterflies of the index bits first .. first+levels-1 of data[begin, end), ascending, in place, on one of
//! `shares` shares of the columns.
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

//! @brief Flips the signs of a chunk in place or on the way.
template <int Size>
TERSUM_TARGET inline void flip_signs(std::uint64_t chunk,
                                     std::uint64_t sign_key,
                                     float const* from,
                                     float* to)
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
        store(to + at, from_bits(to_bits(load(from + at)) ^ sign_mask(signs, o / 8, q, s)));
      }
    }
  }
}

//! @brief to[i] = factor * a[i] + b[i] with one rounding.
TERSUM_TARGET inline void fused_add(
  float factor, float const* a, float const* b, int count, float* to)
{
  int i = 0;
  for (; i + width <= count; i += width) {
    store(to + i, fma(broadcast(factor), load(a + i), load(b + i)));
  }
  for (; i < count; ++i) { to[i] = ::fmaf(factor, a[i], b[i]); }
}

//! @brief to[i] = from[i] * factor, converted. Returns whether all of from[i] are finite.
template <class From, class To>
TERSUM_TARGET inline bool convert_values(From const* from, To* to, float factor, std::size_t count)
{
  words largest           = {};
  std::size_t const whole = count - count % width;
  for (std::size_t i = 0; i < whole; i += width) {
    floats const v   = load_values(from + i);
    words const size = to_bits(v) & 0x7fffffffu;
    largest          = size > largest ? size : largest;
    store_values(to + i, v * broadcast(factor));
  }
  std::uint32_t most = 0;
  for (int lane = 0; lane < width; ++lane) { most = maximum(most, largest[lane]); }
  for (std::size_t i = whole; i < count; ++i) {
    float const v = to_float(from[i]);
    most          = maximum(most, float_bits(v) & 0x7fffffffu);
    to[i]         = from_float<To>(v * factor);
  }
  return most < 0x7f800000u;
}

//! @brief to[i] = a[i] + b[i] in float, rounded to the element.
template <class Element>
TERSUM_TARGET inline void add_values(Element const* a,
                                     Element const* b,
                                     Element* to,
                                     std::size_t count)
{
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    store_values(to + i, load_values(a + i) + load_values(b + i));
  }
  for (; i < count; ++i) { to[i] = from_float<Element>(to_float(a[i]) + to_float(b[i])); }
}
