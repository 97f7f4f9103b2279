// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of `group_two_means` on one CPU thread. Values lie as in the gradient: a group of 32 positions of the wire has eight
//! coordinates of each quarter of the chunk.

//! @brief The words of the codes of a chunk, and behind them the word of the ends of its group of this number.
template <class Quantizer, int Size>
TERSUM_SIMD int place_of_ends(int group)
{
  constexpr int in_a_quarter = Size / 4 / Quantizer::block;
  return Size / 32 + 4 * (group % in_a_quarter) + group / in_a_quarter;
}

//! @brief Adds neighbours, `Rounds` times, of `Count` numbers.
template <int Count, int Rounds>
TERSUM_SIMD void add_neighbours(float* sums)
{
  if constexpr (Rounds > 0) {
    constexpr int half = Count / 2;
    if constexpr (half % width == 0) {
      for (int i = 0; i < half; i += width) {
        floats const a = load(sums + 2 * i), b = load(sums + 2 * i + width);
        store(sums + i, even(a, b) + odd(a, b));
      }
    } else {
      for (int i = 0; i < half; ++i) { sums[i] = sums[2 * i] + sums[2 * i + 1]; }
    }
    add_neighbours<half, Rounds - 1>(sums);
  }
}

//! @brief What is gathered of all groups of a chunk, and its codes: eight neighbours in order, one after the other, and
//! then pairs.
template <int Block, int Size>
TERSUM_SIMD void gather_signs(float const* values,
                              float (&field)[4][extent(Size / 8)],
                              std::uint32_t* to)
{
  std::uint8_t codes[extent(Size / 8)];
  for (int first = 0; first < Size; first += 8 * width) {
    words v[8];
    TERSUM_UNROLL
    for (int i = 0; i < 8; ++i) { v[i] = to_bits(load(values + first + i * width)); }
    unzip(v);  // to neighbour i of each lane's eight
    floats below{}, others{};
    words count{}, code{};
    TERSUM_UNROLL
    for (int i = 0; i < 8; ++i) {
      words const is_below = (words)(from_bits(v[i]) < floats{});
      floats const one     = from_bits(v[i] & is_below);
      floats const other   = from_bits(v[i] & ~is_below);
      below                = i == 0 ? one : below + one;
      others               = i == 0 ? other : others + other;
      count -= is_below;
      code |= ~is_below & (1u << i);
    }
    store(field[0] + first / 8, below);
    store(field[1] + first / 8, others);
    store(field[2] + first / 8, __builtin_convertvector((integers)count, floats));
    store_bytes(codes + first / 8, code);
  }
  constexpr int quarter = Size / 32;
  for (int i = 0; i < quarter; ++i) {
    to[i] = codes[i] | std::uint32_t{codes[i + quarter]} << 8 |
            std::uint32_t{codes[i + 2 * quarter]} << 16 |
            std::uint32_t{codes[i + 3 * quarter]} << 24;
  }
  constexpr int rounds = log2_exact(Block / 8);
  add_neighbours<Size / 8, rounds>(field[0]);
  add_neighbours<Size / 8, rounds>(field[1]);
  add_neighbours<Size / 8, rounds>(field[2]);  // which are exact in any order
  for (int i = 0; i < Size / Block; ++i) { field[3][i] = static_cast<float>(Block) - field[2][i]; }
}

//! @brief Encodes values: codes, and ends of groups. Returns the chunk's scale, which is its largest magnitude. If that is next to
//! nothing the scale is zero, if a value is not finite NaN; the codes are then zeros.
template <class Quantizer, int Size>
TERSUM_TARGET float encode_two_means(float const* values, std::uint32_t* to)
{
  constexpr int block = Quantizer::block;
  float const whole   = bits_float(largest_of<Size>(values));
  if (!(whole < 0x1p100f && whole >= 0x1p-100f)) {
    for (std::uint32_t i = 0; i < code_words<Quantizer>(Size); ++i) { to[i] = 0; }
    return whole < 0x1p100f ? 0.0f : bits_float(0x7fffffffu);
  }
  alignas(64) float field[4][extent(Size / 8)];
  gather_signs<block, Size>(values, field, to);
  for (int group = 0; group < Size / block; ++group) {
    float const of_group[]{field[0][group], field[1][group], field[2][group], field[3][group]};
    to[place_of_ends<Quantizer, Size>(group)] = Quantizer::ends(host_group{}, of_group, whole);
  }
  return whole;
}

//! @brief Words in which `width` coordinates have one bit each, from position `first` of a quarter on.
TERSUM_SIMD words words_of_bits(std::uint32_t const* from, int first)
{
  words const one = broadcast(from[first / 8]);
  if constexpr (width < 16) { return one; }
  return lane_index() < 8 ? one : broadcast(from[first / 8 + 1]);
}

//! @brief Adds the decoded codes to values, or to zeros if they are `Fresh`. `whole` is the chunk's scale times some factor.
template <class Quantizer, int Size, bool Fresh>
TERSUM_TARGET void add_two_means(std::uint32_t const* from, float whole, float* values)
{
  constexpr int block = Quantizer::block;
  words const ones    = broadcast(1u) << (lane_index() & 7u);
  for (int group = 0; group < Size / block; ++group) {
    std::uint32_t const ends = from[place_of_ends<Quantizer, Size>(group)];
    floats const low         = broadcast(Quantizer::value(host_group{}, ends, whole, 0));
    floats const high        = broadcast(Quantizer::value(host_group{}, ends, whole, 1));
    for (int i = group * block; i < (group + 1) * block; i += width) {
      int const within   = i % (Size / 4);
      words const bit    = ones << (8 * (i / (Size / 4)) + within % 8);
      floats const value = (words_of_bits(from, within) & bit) != 0 ? high : low;
      store(values + i, (Fresh ? floats{} : load(values + i)) + value);
    }
  }
}
