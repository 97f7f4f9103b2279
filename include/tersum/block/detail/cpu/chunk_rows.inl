// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One chunk in the vectors of one CPU thread: how it lies in them and in words, and the rotation on the way there and back. The
//! arrangement:
//!
//! A *row* is one vector. Its lanes hold 8 neighbouring coordinates (4 of them in vectors of 4; 16-lane vectors hold 8
//! of the first half of the chunk and the 8 across from them in the second), so that all butterflies but the first
//! three are between rows, and every lane packs whole wire words of its own.

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

//! @brief Whether a vector at `index` of a chunk is the first in its line of the cache. Memory is prefetched in lines.
template <chunk_pointer Chunk>
TERSUM_SIMD constexpr bool begins_line(int index)
{
  return index * static_cast<int>(sizeof(typename stored_element<Chunk>::type)) % 64 == 0;
}

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

//! @brief One level of butterflies between lanes that differ in `Bit`: the lower lane gets the sum, the upper the difference.
template <int Bit>
TERSUM_SIMD floats lane_butterfly(floats v)
{
  auto const upper = (lane_index() & static_cast<std::uint32_t>(Bit)) != 0;
  if (width == 4) {  // where fma is slow
    words const flip = upper ? broadcast(0x80000000u) : broadcast(0u);
    return exchange<Bit>(v) + from_bits(to_bits(v) ^ flip);
  } else {
    return fma(v, upper ? broadcast(-1.0f) : broadcast(1.0f), exchange<Bit>(v));
  }
}

//! Adds to each lane those whose numbers differ from its own in the bits First .. Last/2, as far as there are so many lanes.
template <int First, int Last>
TERSUM_SIMD floats add_across(floats v)
{
  if constexpr (First < Last && First < width) {
    return add_across<2 * First, Last>(v + exchange<First>(v));
  } else {
    return v;
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

//! The number of sign words of a chunk, rounded up to whole vectors.
template <int Size>
inline constexpr int sign_room = Size / 32 < width ? width : Size / 32;

//! @brief Computes the sign words of a chunk, as `sign_bits` defines them; does nothing for a chunk that is not rotated.
template <int Size, bool Rotated = true>
TERSUM_SIMD void chunk_signs(std::uint64_t chunk,
                             std::uint64_t key,
                             std::uint32_t (&out)[sign_room<Size>])
{
  if (!Rotated) { return; }
  // A chunk's words share the upper half of their number.
  std::uint64_t const first = chunk * (Size / 32);
  std::uint32_t const high =
    mix32(static_cast<std::uint32_t>(first >> 32) ^ static_cast<std::uint32_t>(key >> 32));
  for (int i = 0; i < Size / 32; i += width) {
    vector_value<words> const number =
      lane_index() + static_cast<std::uint32_t>(first + static_cast<unsigned>(i));
    store(out + i, mix32(mix32(number ^ static_cast<std::uint32_t>(key)) + high).v);
  }
}

//! @brief Sign masks (bit 31) of one vector: part `part` of the eight neighbours of a group in quarter `quarter`, or, in
//! vectors of 16, of two groups.
TERSUM_SIMD words sign_mask(std::uint32_t const* signs, int group, int quarter, int part)
{
  words bits = broadcast(signs[group]);
  if (width == 16) { bits = lane_index() < 8u ? bits : broadcast(signs[group + 1]); }
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
        if (Fetch) {
          constexpr std::uintptr_t ahead = tuning{}.cpu.read_ahead * 3 / 2;
          fetch_beyond<false, ahead>(from + (q * quarter + o + s * width));
        }
        if (Rotate) { eight[s] = from_bits(to_bits(eight[s]) ^ sign_mask(signs, o / 8, q, s)); }
      }
      if (Rotate) { neighbour_butterflies(eight); }
      TERSUM_UNROLL
      for (int s = 0; s < shape::split; ++s) { v[s][q] = eight[s]; }
    }
    TERSUM_UNROLL
    for (int s = 0; s < shape::split; ++s) {
      row_butterflies<0, Rotate ? 2 : 0>(v[s]);
      if (shape::joined) {
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

//! @brief From rows to the order of the gradient: does butterflies 0, 1, 2 and the two highest, flips signs, and scales.
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
        if (shape::joined) {
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
      if (Rotate) { neighbour_butterflies(eight); }
      TERSUM_UNROLL
      for (int s = 0; s < shape::split; ++s) { v[s][q] = eight[s]; }
    }
    TERSUM_UNROLL
    for (int s = 0; s < shape::split; ++s) {
      row_butterflies<0, Rotate ? 2 : 0>(v[s]);
      TERSUM_UNROLL
      for (int q = 0; q < 4; ++q) {
        floats factor = broadcast(scale);
        if (Rotate) { factor = from_bits(to_bits(factor) ^ sign_mask(signs, o / 8, q, s)); }
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

//! @brief The first of the rows of a row block.
template <int Size>
TERSUM_SIMD int first_row_of(int block, int part)
{
  return rows_of<Size>::number(block, part, 0) * width;
}

//! @brief Butterflies over the bits First .. Last-1 of the numbers of the rows of a wire block. If it is to `Fetch`, it prefetches
//! memory `beyond` for writing.
template <int Size, int First, int Last, bool Fetch, chunk_pointer To>
TERSUM_SIMD void butterflies_of_rows(float* first_row, [[maybe_unused]] To beyond)
{
  constexpr int together = 1 << (Last - First);
  constexpr int apart    = rows_of<Size>::split * width << First;
  constexpr int row      = rows_of<Size>::split * width;
  for (int k = 0; k < rows_of<Size>::in_block / together; ++k) {
    int const first = ((k >> First << Last) + k % (1 << First)) * row;
    floats v[static_cast<std::size_t>(together)];
    TERSUM_UNROLL
    for (int i = 0; i < together; ++i) {
      if (Fetch) { fetch_beyond<true>(beyond + (first + i * apart)); }
      v[i] = load(first_row + first + i * apart);
    }
    row_butterflies<0, Last - First>(v);
    TERSUM_UNROLL
    for (int i = 0; i < together; ++i) { store(first_row + first + i * apart, v[i]); }
  }
}

//! @brief The butterflies of index bits 3 to 7, the last ones forward and the first ones backward, of as many rows as registers hold.
//! If it is to `Fetch`, it prefetches the gradient beyond the chunk for writing.
template <int Size, bool Fetch, chunk_pointer Chunk>
TERSUM_SIMD void wire_rows(float* rows, Chunk gradient)
{
  using shape        = rows_of<Size>;
  constexpr int last = shape::wire_levels;
  constexpr int held = minimum(last, width == 16 ? 5 : 3);
  for (int i = 0; i < shape::parts; ++i) {
    int const start = first_row_of<Size>(i / shape::split, i % shape::split);
    butterflies_of_rows<Size, 0, held, Fetch>(rows + start, gradient + start);
    if (last > held) { butterflies_of_rows<Size, held, last, false>(rows + start, rows + start); }
  }
}

//! @brief The number of the group that a lane of a row block holds.
template <int Size>
TERSUM_SIMD int group_of(int block, int part, int lane)
{
  using shape     = rows_of<Size>;
  int const upper = shape::joined && lane >= 8 ? shape::upper_block : 0;
  return (block + upper) * 8 + 4 * part + lane % 8;
}

//! Lanes of the two halves alternating.
template <class Vector>
TERSUM_SIMD Vector alternate_halves(Vector v)
{
  return interleave<0>(v, join_halves<1>(v, v));
}

//! The inverse: the even lanes followed by the odd ones.
template <class Vector>
TERSUM_SIMD Vector part_halves(Vector v)
{
  return join_halves<0>(even(v, v), odd(v, v));
}

//! @brief Whether vectors store and load the `Bits` words of the groups of a row block, rather than one lane after the other.
template <int Size, int Bits>
inline constexpr bool in_vectors = (Bits & (Bits - 1)) == 0 || !rows_of<Size>::halved;

//! @brief Words of the groups of a row block that lie behind its first one.
template <int Size, int Bits>
inline constexpr int words_at_first = rows_of<Size>::upper_block > 0 ? 8 * Bits : width* Bits;

//! @brief Copies words to memory if it is to `Store`, or from there.
template <bool Store, class Words>
TERSUM_SIMD void copy_words(void* own, Words* memory, std::size_t bytes)
{
  if constexpr (Store) {
    __builtin_memcpy(memory, own, bytes);
  } else {
    __builtin_memcpy(own, memory, bytes);
  }
}

//! @brief Stores the packed codes of the rows of a part of a row block, `Bits` words in each lane, as the words of their groups. Or loads them, and
//! prefetches what follows, as if row blocks shared the words of their chunk in order.
//!
//! A *group* is the positions of the wire that one lane of a row block holds, position k in row k, or in two lanes of half a block.
template <int Size, bool Store, std::size_t Bits, class Words>
TERSUM_SIMD void move_codes(int block, int part, words (&packed)[Bits], Words* memory)
{
  constexpr int bits   = static_cast<int>(Bits);
  Words* const first   = memory + group_of<Size>(block, part, 0) * bits;
  Words* const upper   = memory + group_of<Size>(block, part, width - 1) * bits - 7 * bits;
  constexpr auto whole = sizeof(words);
  if (!Store) {
    // For codes of a byte, half as far measured better.
    constexpr auto ahead = tuning{}.cpu.read_ahead / (bits == 8 ? 2 : 1);
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      if (begins_line<float*>(w * width)) {
        fetch_beyond<false, ahead>(memory +
                                   ((block * rows_of<Size>::split + part) * bits + w) * width);
      }
    }
  }
  if constexpr (in_vectors<Size, bits>) {
    constexpr int count = words_at_first<Size, bits>;
    if (Store && rows_of<Size>::halved) {
      TERSUM_UNROLL
      for (int w = 0; w < bits; ++w) { packed[w] = alternate_halves(packed[w]); }
    }
    if (Store) { zip(packed); }
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      if (w * width >= count) {
        copy_words<Store>(&packed[w], upper + (w * width - count), whole);
      } else if ((w + 1) * width <= count) {
        copy_words<Store>(&packed[w], first + w * width, whole);
      } else {
        std::uint32_t both[width];
        if (Store) { store(both, packed[w]); }
        copy_words<Store>(both, first + w * width, whole / 2);
        copy_words<Store>(both + width / 2, upper, whole / 2);
        packed[w] = load(both);
      }
    }
    if (!Store) { unzip(packed); }
    if (!Store && rows_of<Size>::halved) {
      TERSUM_UNROLL
      for (int w = 0; w < bits; ++w) { packed[w] = part_halves(packed[w]); }
    }
  } else {
    std::uint32_t lanes[Bits][width];
    if (Store) { __builtin_memcpy(lanes, packed, sizeof(lanes)); }
    for (int lane = 0; lane < width; ++lane) {
      Words* const group = (lane < 8 ? first : upper) + lane % 8 * bits;
      TERSUM_UNROLL
      for (int w = 0; w < bits; ++w) {
        copy_words<Store>(&lanes[w][lane], group + w, sizeof(lanes[w][lane]));
      }
    }
    if (!Store) { __builtin_memcpy(packed, lanes, sizeof(lanes)); }
  }
}
