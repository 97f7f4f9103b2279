// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One chunk on one CPU thread: how it lies in vectors, its rotation, what the ranks agree on of it, its codes, and the mean
//! that becomes of their sum. The arrangement:
//!
//! A *row* is one vector. Its lanes hold 8 neighbouring coordinates (4 of them in vectors of 4; 16-lane vectors hold 8
//! of the first half of the chunk and the 8 across from them in the second), so that all butterflies but the first
//! three are between rows, and every lane packs whole wire words of its own.

// Rows, and those butterflies that are not within one wire block.

//! @brief The rows of a chunk of `Size` coordinates.
template <int Size>
struct rows_of {
  static constexpr int log     = log2_exact(Size);
  static constexpr bool joined = width == 16;  //!< Lanes 8 to 15 are half a chunk further.
  static constexpr bool halved = joined && Size == 256;  //!< Which then is half a wire block.
  static constexpr int split   = width == 4 ? 2 : 1;     //!< Vectors that make up 8 neighbours.
  static constexpr int count   = Size / width;           //!< Rows.
  //! Rows that belong to a row block, whose first lanes hold the wire block of the same number: positions of the wire in a lane.
  static constexpr int in_block    = chunk_order<Size>::rows / (halved ? 2 : 1);
  static constexpr int wire_levels = log < 10 ? log - 5 : 5;  //!< As in block_hadamard.
  static constexpr int middle_end  = log - 2;  //!< Index bits 8 .. middle_end-1 come before.
  static constexpr int blocks      = count / (in_block * split);  //!< Row blocks.
  static constexpr int parts       = blocks * split;              //!< Parts of row blocks.
  //! The number of row k of a part of a row block.
  static constexpr int number(int block, int part, int k) noexcept
  {
    return (block * in_block + k) * split + part;
  }
  static constexpr int upper_block =
    joined && !halved ? blocks
                      : 0;  //!< The distance, in wire blocks, to the one in the upper lanes.
};

//! @brief Butterflies over the bits First .. Last-1 of the index of an array of vectors, ascending.
template <int First, int Last, std::size_t Count>
TERSUM_SIMD void row_butterflies(floats (&v)[Count])
{
  constexpr int count = static_cast<int>(Count);
  TERSUM_UNROLL
  for (int level = First; level < Last; ++level) {
    TERSUM_UNROLL
    for (int i = 0; i < count; ++i) {
      if ((i >> level & 1) == 0) {
        floats const a    = v[i];
        floats const b    = v[i | 1 << level];
        v[i]              = a + b;
        v[i | 1 << level] = a - b;
      }
    }
  }
}

//! @brief The sum of the lanes, neighbours first.
TERSUM_SIMD float add_lanes(floats v)
{
  v = v + exchange<1>(v);
  v = v + exchange<2>(v);
  if constexpr (width >= 8) { v = v + exchange<4>(v); }
  if constexpr (width >= 16) { v = v + exchange<8>(v); }
  return v[0];
}

//! @brief One level of butterflies between lanes that differ in `Bit`: the lower one of a pair gets the sum, the upper one
//! the difference.
template <int Bit>
TERSUM_SIMD floats lane_butterfly(floats v)
{
  auto const upper = (lane_index() & static_cast<std::uint32_t>(Bit)) != 0;
  if constexpr (width == 4) {  // where fma is slow
    words const flip = upper ? broadcast(0x80000000u) : broadcast(0u);
    return exchange<Bit>(v) + from_bits(to_bits(v) ^ flip);
  } else {
    return fma(v, upper ? broadcast(-1.0f) : broadcast(1.0f), exchange<Bit>(v));
  }
}

//! @brief The first three butterflies of eight neighbours: one vector, half of one, or two.
template <std::size_t Split>
TERSUM_SIMD void neighbour_butterflies(floats (&v)[Split])
{
  constexpr int split = static_cast<int>(Split);
  TERSUM_UNROLL
  for (int s = 0; s < split; ++s) { v[s] = lane_butterfly<2>(lane_butterfly<1>(v[s])); }
  if constexpr (split == 2) {
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

//! The number of sign words of a chunk, rounded up to whole vectors.
template <int Size>
inline constexpr int sign_room = Size / 32 < width ? width : Size / 32;

//! @brief Computes the sign words of a chunk, as `sign_bits` defines them; does nothing for a chunk that is not rotated.
template <int Size, bool Rotated = true>
TERSUM_SIMD void chunk_signs(std::uint64_t chunk,
                             std::uint64_t key,
                             std::uint32_t (&out)[sign_room<Size>])
{
  if constexpr (!Rotated) { return; }
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

//! @brief From the order of the gradient to rows: flips signs, then does the butterflies of index bits 0, 1, 2 and of the two
//! highest. If it is to `Fetch`, it also prefetches the gradient beyond the chunk.
template <int Size, bool Rotate, bool Fetch = false, chunk_pointer From>
TERSUM_SIMD void load_rows(From from, std::uint32_t const* signs, float* rows)
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
        eight[s] = load_values(from + (q * quarter + o + s * width));
        if constexpr (Fetch) {
          constexpr std::uintptr_t ahead = tuning{}.cpu.read_ahead * 3 / 2;
          fetch_beyond<false, ahead>(from + (q * quarter + o + s * width));
        }
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
        // Groups o and o+8 of quarters 0 and 2, then of 1 and 3.
        store(rows + 2 * o, join_halves<0>(v[s][0], v[s][2]));
        store(rows + 2 * o + 16, join_halves<1>(v[s][0], v[s][2]));
        store(rows + 2 * (quarter + o), join_halves<0>(v[s][1], v[s][3]));
        store(rows + 2 * (quarter + o) + 16, join_halves<1>(v[s][1], v[s][3]));
      } else {
        TERSUM_UNROLL
        for (int q = 0; q < 4; ++q) { store(rows + q * quarter + o + s * width, v[s][q]); }
      }
    }
  }
}

//! @brief From rows to the order of the gradient: does the butterflies of index bits 0, 1, 2 and of the two highest, flips
//! signs, and scales.
template <int Size, bool Rotate, chunk_pointer To>
TERSUM_SIMD void store_rows(To to, std::uint32_t const* signs, float scale, float const* rows)
{
  using element         = typename stored_element<To>::type;
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
          float const* const pair = rows + 2 * (q % 2 * quarter + o);
          if (q < 2) {
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
        store_values(to + (q * quarter + o + s * width), within_range<element>(v[s][q] * factor));
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

//! @brief Brings a whole chunk into rows, with all butterflies but those of the wire blocks.
template <class Codec, chunk_pointer From>
TERSUM_SIMD void rotate_rows(From from, std::uint32_t const* signs, float* rows)
{
  load_rows<Codec::chunk_size, Codec::rotates_chunks>(from, signs, rows);
  if constexpr (Codec::rotates_chunks) { middle_rows<Codec::chunk_size>(rows); }
}

//! @brief The inverse transform of a chunk, after its butterflies within wire blocks.
template <class Codec>
TERSUM_SIMD void invert_rows(float* rows)
{
  if constexpr (Codec::rotates_chunks) { middle_rows<Codec::chunk_size>(rows); }
}

// A chunk to codes.

//! @brief Rounds one row. A lane holds code + max_level in the eight bits from `code_shift` on; the others are undefined.
//! `random` holds the bytes in its low bits.
template <class Quantizer>
TERSUM_SIMD words round_row(Quantizer const& quantizer, floats v, float scale, words random)
{
  constexpr int limit = Quantizer::max_level;
  if constexpr (has_rounds_to_grid<Quantizer>) {
    // As round_to_grid. The constant that is added has zeros where the code lies, so that it need not be subtracted again.
    constexpr int unit          = 1 << Quantizer::fraction_bits;
    constexpr std::uint32_t low = 0x4b400000;
    integers const sum          = (integers)(rounded_bits<limit * unit>(v, scale) + random);
    integers const top          = (integers)broadcast(low + 2 * limit * unit + unit - 1);
    integers const bottom       = (integers)broadcast(low);
    integers const bounded      = sum < top ? sum : top;
    return (words)(bounded > bottom ? bounded : bottom);
  } else if constexpr (has_table<Quantizer>) {
    // As lookup_quantizer::encode.
    using table            = typename Quantizer::table;
    constexpr int half     = table::count / 2;
    floats const size      = from_bits(to_bits(v) & 0x7fffffffu);
    integers const beyond  = (integers)(rounded_bits<256 * limit>(size, scale) - 0x4b400000u);
    integers const highest = (integers)broadcast(512u * limit);
    integers const below   = beyond < highest ? beyond : highest;
    integers const x       = below > 0 ? below : integers{};  // negative where the value is NaN
    // Not integers{} + a number, at which nvcc 13.0 crashes.
    constexpr int least = table::value[half - 1];
    integers low        = (integers)broadcast(static_cast<std::uint32_t>(least));
    integers gap        = (integers)broadcast(static_cast<std::uint32_t>(2 * (limit - least)));
    if constexpr (width >= 8 && limit < 32) {
      // What lies around each step of the grid, in the order of magnitudes.
      using steps           = table_steps<table>;
      integers const centre = (integers)broadcast(256u * limit);
      words const step =
        (words)(x > centre ? x : centre) / 256u - static_cast<std::uint32_t>(limit);
      words const around = to_bits(look_up<steps::count>(steps::around.data(), step));
      low                = (integers)(around & 0xffffu);
      gap                = (integers)(around >> 16);
    } else {
      TERSUM_UNROLL
      for (int k = half; k + 1 < table::count; ++k) {
        integers const above = x >= 256 * table::value[k];
        low += above & (table::value[k] - table::value[k - 1]);
        gap += above & (table::value[k + 1] - 2 * table::value[k] + table::value[k - 1]);
      }
    }
    integers const up   = ((integers)random * 2 + 1) * gap < 2 * x - 512 * low;
    integers const code = low + (up & gap) - limit;
    integers const sign = (integers)to_bits(v) >> 31;
    return (words)((code ^ sign) - sign + limit) << code_shift<Quantizer>;
  } else if constexpr (has_rounds_to<Quantizer>) {
    // As natural_quantizer::encode.
    constexpr auto& to  = Quantizer::rounds_to;
    integers const size = (integers)(to_bits(v) & 0x7fffffffu);
    integers const places =
      (integers)(rounded_bits<0>(from_bits((words)size), scale) - 0x4b400000u);
    integers const highest = (integers)broadcast(256u * limit);
    integers const below   = places < highest ? places : highest;
    integers const number  = below > 0 ? below : integers{};  // negative where zero meets infinity
    integers const x       = size > 0x7f800000 ? integers{} : number;
    integers code          = {};
    if constexpr (powers_of_two<Quantizer>) {
      // A float's exponent, which a fraction that reaches the random one raises by one. Below the first power it is that of the sum of both,
      // less one, and what it stands for is less than 1.
      constexpr std::uint32_t one = 1u << 23;
      floats const fine           = __builtin_convertvector(x, floats);
      integers const above        = (integers)to_bits(fine);
      integers const below        = (integers)(to_bits(fine + 256.0f) - one);
      words const place           = (words)(above > below ? above : below);
      words const raised          = place + (one - 1u - (1u << 14)) - (random << 15);
      code = __builtin_convertvector(from_bits(raised & 0xff800000u) * 0x1p-8f, integers);
    } else {
      integers low = {};
      integers gap = (integers)broadcast(static_cast<std::uint32_t>(to[1]));
      TERSUM_UNROLL
      for (std::size_t k = 1; k + 1 < to.size(); ++k) {
        auto const above = x >= 256 * to[k];
        low              = above ? (integers)broadcast(static_cast<std::uint32_t>(to[k])) : low;
        gap = above ? (integers)broadcast(static_cast<std::uint32_t>(to[k + 1] - to[k])) : gap;
      }
      integers const up = ((integers)random * 2 + 1) * gap < 2 * x - 512 * low;
      code              = low + (up & gap);
    }
    integers const sign = (integers)to_bits(v) >> 31;
    return (words)((code ^ sign) - sign + limit) << code_shift<Quantizer>;
  } else {
    // Arrays, not elements of vectors, and no branch: so compilers make vectors of the loop again.
    float values[width];
    std::uint32_t bytes[width], fields[width];
    store(values, v);
    store(bytes, random);
    [[maybe_unused]] bool within = true;
    for (int lane = 0; lane < width; ++lane) {
      auto const code = quantizer.encode(values[lane], scale, bytes[lane]);
      within          = within & is_code<Quantizer>(code);
      fields[lane]    = static_cast<std::uint32_t>(code + limit) << code_shift<Quantizer>;
    }
    assert(within && "tersum: encode of a quantizer returned a code beyond its max_level");
    return load_words(fields);
  }
}

//! @brief Where the words of one lane group of a block go.
template <class Codec>
TERSUM_SIMD std::uint32_t* block_words(std::uint32_t* chunk_words, int wire_block, int part)
{
  constexpr int block_size = chunk_order<Codec::chunk_size>::block / Codec::lanes::lanes;
  return chunk_words + wire_block * block_size + part * (block_size / 2);
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
  if constexpr (levels > 2) { row_butterflies<0, levels - 2>(v); }
  TERSUM_UNROLL
  for (int m = 0; m < columns; ++m) {
    source.template fetch_beyond<Keep>(offset + (4 * m + C) * stride);
    // As many words as a row makes.
    if constexpr (Codec::lanes::bits >= 4) {
      fetch_beyond<true>(payload + (4 * m + C) * (width * Codec::lanes::bits / 32));
    }
    words const byte  = (random[m / 4][m % 4] >> static_cast<std::uint32_t>(8 * C)) & 0xffu;
    words const field = round_row(codec.quantizer, v[m], scale, byte);
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
      lanes::ones * static_cast<std::uint32_t>(lanes::limit + 1 - quantizer::max_level);
    TERSUM_UNROLL
    for (int r = 0; r < runs; ++r) { packed[r] = (packed[r] + lift) ^ lanes::signs; }
  }
  if constexpr (shape::halved) {
    TERSUM_UNROLL
    for (int r = 0; r < runs; ++r) { packed[r] = alternate_halves(packed[r]); }
  }
  zip(packed);
  TERSUM_UNROLL
  for (int r = 0; r < runs; ++r) {
    if constexpr (shape::halved) {
      store(chunk_words + r * width, packed[r]);
    } else if constexpr (shape::joined) {
      int const upper = r / (runs / 2);
      store(block_words<Codec>(chunk_words, block + upper * shape::upper_block, 0) +
              (r % (runs / 2)) * width,
            packed[r]);
    } else {
      store(block_words<Codec>(chunk_words, block, part) + r * width, packed[r]);
    }
  }
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
  rotate_rows<Codec>(from, signs, rows);
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

// Summed codes to the mean.

//! @brief What is counted of a chunk's codes when it is decoded.
struct decoded_counts {
  std::uint64_t square_sum = 0;
  std::uint64_t at_limit   = 0;
};

//! @brief Unpacks one block of rows and begins the inverse transform.
template <class Codec, chunk_pointer To>
TERSUM_SIMD void decode_block(int world,
                              int block,
                              int part,
                              std::uint32_t const* chunk_words,
                              To to,
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

  words packed[extent(runs)];
  std::uint32_t* const from = const_cast<std::uint32_t*>(chunk_words);
  TERSUM_UNROLL
  for (int r = 0; r < runs; ++r) {
    if constexpr (shape::halved) {
      packed[r] = load_words(from + r * width);
    } else if constexpr (shape::joined) {
      int const upper = r / (runs / 2);
      packed[r]       = load_words(block_words<Codec>(from, block + upper * shape::upper_block, 0) +
                             (r % (runs / 2)) * width);
    } else {
      packed[r] = load_words(block_words<Codec>(from, block, part) + r * width);
    }
  }
  unzip(packed);
  if constexpr (shape::halved) {
    TERSUM_UNROLL
    for (int r = 0; r < runs; ++r) { packed[r] = part_halves(packed[r]); }
  }

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
      if constexpr (saturates<Codec>) {
        limits -= (integers)(code >= lanes::limit) + (integers)(code <= -lanes::limit);
        if constexpr (tracks<Codec>) {
          squares = squares + v[c] * v[c];
        }  // integers below 2^24: exact
      }
    }
    if constexpr (levels > 0) { row_butterflies<0, (levels < 2 ? levels : 2)>(v); }
    TERSUM_UNROLL
    for (int c = 0; c < 4; ++c) {
      fetch_beyond<true>(to + (static_cast<int>(first_row - rows) + (4 * m + c) * stride));
      store(first_row + (4 * m + c) * stride, v[c]);
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
  if constexpr (saturates<Codec>) {
    for (int lane = 0; lane < width; ++lane) {
      counts.at_limit += static_cast<std::uint32_t>(limits[lane]);
      counts.square_sum += static_cast<std::uint64_t>(squares[lane]);
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
  decoded_counts counts;
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      decode_block<Codec>(world, block, part, chunk_words, to, rows, counts);
    }
  }
  invert_rows<Codec>(rows);
  store_rows<size, Codec::rotates_chunks>(to, signs, scale, rows);
  if constexpr (saturates<Codec>) {
    step.saturated = static_cast<std::uint32_t>(counts.at_limit);
    if constexpr (tracks<Codec>) {
      step.square_sum = static_cast<std::uint32_t>(counts.square_sum);
    }
  }
}

// What the ranks agree on: norms and magnitudes.

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
TERSUM_SIMD float norm_of(From from)
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
  return add_lanes(sums[0]);
}

//! @brief The squared norm of one chunk.
template <int Size, chunk_pointer From>
TERSUM_TARGET inline float square_norm(From from)
{
  return norm_of<Size>(from);
}

//! @brief The bits of the largest magnitude of one rotated chunk, unnormalized; NaN is above infinity.
template <class Codec, chunk_pointer From>
TERSUM_TARGET inline std::uint32_t largest_magnitude(std::uint64_t sign_key,
                                                     std::uint64_t chunk,
                                                     From from)
{
  constexpr int size = Codec::chunk_size;
  using shape        = rows_of<size>;
  alignas(64) float rows[extent(size)];
  std::uint32_t signs[sign_room<size>];
  chunk_signs<size, Codec::rotates_chunks>(chunk, sign_key, signs);
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
