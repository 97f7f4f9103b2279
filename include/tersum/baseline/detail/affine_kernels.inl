// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of groups with two ends on one CPU thread. Values lie as in the gradient: a group of 32 positions of the wire has eight
//! coordinates of each quarter of the chunk.

//! @brief The words of the codes of a chunk, and behind them the word of the ends of its group of this number.
template <class Quantizer, int Size>
TERSUM_SIMD int place_of_ends(int group)
{
  constexpr int in_a_quarter = Size / 4 / Quantizer::block;
  return Size / 32 * Quantizer::bits + 4 * (group % in_a_quarter) + group / in_a_quarter;
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

//! @brief What `group_two_means` gathers of all groups of a chunk, and its codes: eight neighbours in order, one after the other, and
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

template <int Distance = 1>
TERSUM_SIMD float least_lane(floats v)
{
  if constexpr (Distance == width) {
    return v[0];
  } else {
    floats const other = exchange<Distance>(v);
    return least_lane<2 * Distance>(other < v ? other : v);
  }
}

template <int Distance = 1>
TERSUM_SIMD float largest_lane(floats v)
{
  if constexpr (Distance == width) {
    return v[0];
  } else {
    floats const other = exchange<Distance>(v);
    return largest_lane<2 * Distance>(other > v ? other : v);
  }
}

//! @brief What `group_minmax` gathers of a group. Of zeros with both signs it takes the first.
template <int Block>
TERSUM_SIMD void gather_ends(float const* values, float (&field)[2])
{
  floats least = load(values), largest = least;
  TERSUM_UNROLL
  for (int i = width; i < Block; i += width) {
    floats const value = load(values + i);
    least              = value < least ? value : least;
    largest            = value > largest ? value : largest;
  }
  field[0] = least_lane(least);
  field[1] = largest_lane(largest);
  if (field[0] == 0 || field[1] == 0) {
    float const* zero = values;
    while (*zero != 0) { ++zero; }
    field[0] = field[0] == 0 ? *zero : field[0];
    field[1] = field[1] == 0 ? *zero : field[1];
  }
}

//! @brief Encodes values: codes, and ends of groups. Returns the chunk's scale, which is its largest magnitude. If that is next to
//! nothing the scale is zero, if a value is not finite NaN; the codes are then zeros.
template <class Quantizer, int Size>
TERSUM_TARGET float encode_affine(float const* values,
                                  [[maybe_unused]] std::uint8_t const* random,
                                  std::uint32_t* to)
{
  constexpr int bits = Quantizer::bits, block = Quantizer::block;
  constexpr bool of_signs = form_of_affine<Quantizer> == affine_form::means_of_signs;
  float const whole       = bits_float(largest_of<Size>(values));
  if (!(is_finite(whole) && whole >= 0x1p-100f)) {
    for (std::uint32_t i = 0; i < code_words<Quantizer>(Size); ++i) { to[i] = 0; }
    return is_finite(whole) ? 0.0f : bits_float(0x7fffffffu);
  }
  if constexpr (of_signs) {
    alignas(64) float field[4][extent(Size / 8)];
    gather_signs<block, Size>(values, field, to);
    for (int group = 0; group < Size / block; ++group) {
      float const of_group[]{field[0][group], field[1][group], field[2][group], field[3][group]};
      to[place_of_ends<Quantizer, Size>(group)] = Quantizer::ends(host_group{}, of_group, whole);
    }
  } else {
    alignas(64) std::uint8_t codes[extent(Size)];
    // Divisions of one group wait for each other; so groups take their steps side by side.
    group_line lines[extent(Size / block)];
    for (int group = 0; group < Size / block; ++group) {
      float of_group[2];
      gather_ends<block>(values + group * block, of_group);
      std::uint32_t const ends                  = Quantizer::ends(host_group{}, of_group, whole);
      to[place_of_ends<Quantizer, Size>(group)] = ends;
      lines[group]                              = line_of<Quantizer>(host_group{}, ends, whole);
    }
    for (int group = 0; group < Size / block; ++group) {
      floats const begin   = broadcast(lines[group].begin);
      floats const inverse = broadcast(lines[group].inverse);
      floats const most    = broadcast(256.0f * Quantizer::last);
      for (int i = group * block; i < (group + 1) * block; i += width) {
        fetch_beyond<false>(values + i);
        floats place = fma(load(values + i) - begin, inverse, broadcast(0.5f));
        place        = place > floats{} ? place : floats{};  // of infinity times zero, too
        place        = place < most ? place : most;
        words up     = broadcast(128u);
        if constexpr (Quantizer::dither::rounds > 0) { up = load_bytes(random + i); }
        // The place is 256 times the last code at most, so that no byte lifts it beyond that code.
        store_bytes(codes + i, ((words) __builtin_convertvector(place, integers) + up) >> 8);
      }
    }
    pack_codes<bits, Size>(codes, to);
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
TERSUM_TARGET void add_affine(std::uint32_t const* from, float whole, float* values)
{
  constexpr int bits = Quantizer::bits, block = Quantizer::block;
  [[maybe_unused]] std::uint8_t codes[extent(bits == 1 ? 1 : Size)];
  if constexpr (bits > 1) { unpack_codes<bits, Size>(from, codes); }
  for (int group = 0; group < Size / block; ++group) {
    group_line const line =
      line_of<Quantizer>(host_group{}, from[place_of_ends<Quantizer, Size>(group)], whole);
    [[maybe_unused]] floats const low  = broadcast(value_on(host_group{}, line, 0)),
                                  high = broadcast(value_on(host_group{}, line, 1));
    [[maybe_unused]] words const ones  = broadcast(1u) << (lane_index() & 7u);
    for (int i = group * block; i < (group + 1) * block; i += width) {
      floats value;
      if constexpr (bits == 1) {
        int const within = i % (Size / 4);
        words const bit  = ones << (8 * (i / (Size / 4)) + within % 8);
        value            = (words_of_bits(from, within) & bit) != 0 ? high : low;
      } else {
        floats const code = __builtin_convertvector((integers)load_bytes(codes + i), floats);
        value             = fma(code, broadcast(line.step), broadcast(line.begin));
      }
      store(values + i, (Fresh ? floats{} : load(values + i)) + value);
    }
  }
}
