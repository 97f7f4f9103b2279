// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of `group_absmax` on one CPU thread. Values lie as in the gradient: a group of 32
//! positions of the wire has eight coordinates of each quarter of the chunk.

//! @brief How many marks a value reaches, from the second on, by a binary search. `number` is what its earlier steps have
//! found.
template <class Quantizer, int Step = 1>
TERSUM_SIMD words marks_below(floats value, words number = words{})
{
  using tree = mark_tree<Quantizer>;
  if constexpr (Step == tree::count) {
    return number;
  } else {
    floats const mark = look_up<Step>(tree::nodes.data() + Step, number);
    return marks_below<Quantizer, 2 * Step>(value, number + number - (words)(value >= mark));
  }
}

//! @brief The numbers of levels that are small floats: a multiple of the magnitude is rounded to so many bits.
template <class Quantizer>
TERSUM_SIMD words nearest_float(floats magnitude)
{
  using rounding               = float_rounding<Quantizer>;
  constexpr int shift          = 23 - rounding::fraction;
  constexpr std::uint32_t half = 1u << (shift - 1);
  constexpr std::uint32_t first =
    (float_bits(rounding::normal) >> shift) - (1u << rounding::fraction);
  constexpr float to_least = 0x1.8p23f * rounding::least;
  floats const whole =
    __builtin_convertvector(__builtin_convertvector(magnitude, integers), floats);
  floats const normal   = broadcast(rounding::normal);
  floats const multiple = whole * static_cast<float>(rounding::factor);
  floats offset         = broadcast(rounding::offsets[(float_bits(rounding::normal) >> 23) % 16]);
  if constexpr (!rounding::same) {
    words const exponent = to_bits(multiple > normal ? multiple : normal) >> 23;
    offset = look_up<16>(rounding::offsets.data(), width == 4 ? exponent & 15u : exponent);
  }
  // Products, differences and sums are exact up to here, and no value lies in the middle of two levels.
  floats const moved   = multiple - offset;
  words const rounded  = (to_bits(moved) + (half - (first << shift))) >> shift;
  words const by_least = to_bits(moved + to_least) - float_bits(to_least);
  return moved < normal ? by_least : rounded;
}

//! @brief The bits of the largest magnitude; NaN is above infinity.
template <int Count>
TERSUM_SIMD std::uint32_t largest_of(float const* values)
{
  integers largest{};
  for (int i = 0; i < Count; i += width) {
    integers const size = (integers)(to_bits(load(values + i)) & 0x7fffffffu);
    largest             = size > largest ? size : largest;
  }
  largest = larger(largest, (integers)exchange<1>(from_bits((words)largest)));
  largest = larger(largest, (integers)exchange<2>(from_bits((words)largest)));
  if constexpr (width >= 8) {
    largest = larger(largest, (integers)exchange<4>(from_bits((words)largest)));
  }
  if constexpr (width == 16) {
    largest = larger(largest, (integers)exchange<8>(from_bits((words)largest)));
  }
  return static_cast<std::uint32_t>(largest[0]);
}

//! @brief Folds vectors to one, whose lane i has the largest lane of vector i.
template <int Count>
TERSUM_SIMD words largest_lanes(integers const* v)
{
  if constexpr (Count == 1) {
    return (words)v[0];
  } else {
    integers folded[extent(Count / 2)];
    TERSUM_UNROLL
    for (int i = 0; i < Count / 2; ++i) {
      integers const a = even(v[2 * i], v[2 * i + 1]), b = odd(v[2 * i], v[2 * i + 1]);
      folded[i] = a > b ? a : b;
    }
    return largest_lanes<Count / 2>(folded);
  }
}

//! @brief Room for a number for each block of a chunk, in whole vectors.
template <int Block, int Size>
inline constexpr int blocks_room = (Size / Block + width - 1) / width* width;

//! @brief The largest magnitude of each block of a chunk; NaN is above infinity. Beyond the last block there are zeros.
template <int Block, int Size>
TERSUM_SIMD void largest_of_blocks(float const* values, float* to)
{
  for (int b = 0; b < Size / Block; b += width) {
    integers largest[width]{};
    TERSUM_UNROLL
    for (int i = 0; i < width; ++i) {
      if (Size / Block < width && i >= Size / Block) { break; }
      TERSUM_UNROLL
      for (int k = 0; k < Block; k += width) {
        integers const size = (integers)(to_bits(load(values + (b + i) * Block + k)) & 0x7fffffffu);
        largest[i]          = size > largest[i] ? size : largest[i];
      }
    }
    store(to + b, from_bits(largest_lanes<width>(largest)));
  }
}

typedef std::uint8_t bytes __attribute__((vector_size(TERSUM_SIMD_WIDTH)));

//! @brief Loads numbers of one byte each.
TERSUM_SIMD words load_bytes(std::uint8_t const* from)
{
  // g++ 12 widens a vector of bytes element by element.
#if TERSUM_SIMD_WIDTH == 16
  return (words)_mm512_maskz_cvtepu8_epi32(0xffff,
                                           _mm_loadu_si128(reinterpret_cast<__m128i const*>(from)));
#elif TERSUM_SIMD_WIDTH == 8
  return (words)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(from)));
#else
  bytes v;
  __builtin_memcpy(&v, from, sizeof(v));
  return __builtin_convertvector(v, words);
#endif
}

//! @brief Stores numbers below 256 as one byte each.
TERSUM_SIMD void store_bytes(std::uint8_t* to, words v)
{
  // g++ 12 narrows vectors to bytes element by element.
#if TERSUM_SIMD_WIDTH == 16
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)v));
#elif TERSUM_SIMD_WIDTH == 8
  __m128i const shorts =
    _mm_packus_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(shorts, shorts));
#elif defined(__SSE2__)
  __m128i const shorts = _mm_packs_epi32((__m128i)v, (__m128i)v);
  int const out        = _mm_cvtsi128_si32(_mm_packus_epi16(shorts, shorts));
  __builtin_memcpy(to, &out, sizeof(out));
#else
  bytes const out = __builtin_convertvector(v, bytes);
  __builtin_memcpy(to, &out, sizeof(out));
#endif
}

//! @brief Packs eight codes, which are a byte each, into `Bits` bytes; in every lane of 64 bits, if there are several.
template <int Bits, class Eight>
TERSUM_SIMD Eight pack_bytes(Eight codes)
{
  // Byte i goes up by 56 - 7 i bits, and no two of the products meet.
  if constexpr (Bits == 1) { return codes * 0x0102040810204080u >> 56; }
  codes = (codes & 0x00ff00ff00ff00ffu) | (codes >> 8 & 0x00ff00ff00ff00ffu) << Bits;
  codes = (codes & 0x0000ffff0000ffffu) | (codes >> 16 & 0x0000ffff0000ffffu) << 2 * Bits;
  return (codes & 0xffffffffu) | codes >> 32 << 4 * Bits;
}

//! @brief Unpacks eight codes from `Bits` bytes.
template <int Bits>
TERSUM_SIMD std::uint64_t unpack_bytes(std::uint64_t packed)
{
  constexpr std::uint64_t one = (1u << Bits) - 1;
  constexpr std::uint64_t two = (one << 16 | one) * 0x0000000100000001u;
  constexpr std::uint64_t low = (std::uint64_t{1} << 4 * Bits) - 1;
  std::uint64_t const halves  = (packed & low) | (packed >> 4 * Bits & low) << 32;
  constexpr std::uint64_t mid = ((std::uint64_t{1} << 2 * Bits) - 1) * 0x0000000100000001u;
  std::uint64_t const pairs   = (halves & mid) | (halves >> 2 * Bits & mid) << 16;
  return (pairs & two) | (pairs >> Bits & two) << 8;
}

//! @brief Packs the codes of a chunk, which are a byte each in the order of the gradient, in that of the wire.
template <int Bits, int Size>
TERSUM_SIMD void pack_codes(std::uint8_t const* codes, std::uint32_t* to)
{
  if constexpr (Bits == 4 && Size / 4 % (8 * width) == 0) {
    // Eight codes are a word. Those of the four quarters take turns.
    for (int first = 0; first < Size / 4; first += 8 * width) {
      words packed[4];
      TERSUM_UNROLL
      for (int quarter = 0; quarter < 4; ++quarter) {
        longs low, high;
        __builtin_memcpy(&low, codes + quarter * (Size / 4) + first, sizeof(low));
        __builtin_memcpy(&high, codes + quarter * (Size / 4) + first + sizeof(low), sizeof(high));
        packed[quarter] = even((words)pack_bytes<Bits>(low), (words)pack_bytes<Bits>(high));
      }
      zip(packed);
      TERSUM_UNROLL
      for (int w = 0; w < 4; ++w) { store(to + first / 2 + w * width, packed[w]); }
    }
  } else if constexpr (Bits == 4 && Size / 4 == 4 * width) {
    // A quarter is half a vector of such words.
    words halves[2];
    TERSUM_UNROLL
    for (int i = 0; i < 2; ++i) {
      longs one, other;
      __builtin_memcpy(&one, codes + 2 * i * (Size / 4), sizeof(one));
      __builtin_memcpy(&other, codes + (2 * i + 1) * (Size / 4), sizeof(other));
      halves[i] = even((words)pack_bytes<Bits>(one), (words)pack_bytes<Bits>(other));
    }
    zip(halves);
    zip(halves);
    store(to, halves[0]);
    store(to + width, halves[1]);
  } else {
    auto* packed = reinterpret_cast<std::uint8_t*>(to);
    for (int first = 0; first < Size / 4; first += 8) {
      TERSUM_UNROLL
      for (int quarter = 0; quarter < 4; ++quarter) {
        std::uint64_t eight;
        __builtin_memcpy(&eight, codes + quarter * (Size / 4) + first, sizeof(eight));
        eight = pack_bytes<Bits>(eight);
        __builtin_memcpy(packed, &eight, Bits);
        packed += Bits;
      }
    }
  }
}

//! @brief The inverse of that.
template <int Bits, int Size>
TERSUM_SIMD void unpack_codes(std::uint32_t const* from, std::uint8_t* codes)
{
  auto const* packed = reinterpret_cast<std::uint8_t const*>(from);
  for (int first = 0; first < Size / 4; first += 8) {
    TERSUM_UNROLL
    for (int quarter = 0; quarter < 4; ++quarter) {
      std::uint64_t eight = 0;
      __builtin_memcpy(&eight, packed, Bits);
      eight = unpack_bytes<Bits>(eight);
      __builtin_memcpy(codes + quarter * (Size / 4) + first, &eight, sizeof(eight));
      packed += Bits;
    }
  }
}

//! @brief Draws the dither of a chunk's values, one byte for each.
template <class Dither, int Size>
TERSUM_TARGET void draw_bytes(dither_key const& key, std::uint64_t chunk, std::uint8_t* to)
{
  philox_block const counter = Dither::counter(chunk * (Size / 16), key);
  std::uint32_t drawn[extent(Size / 4 < 4 * width ? 4 * width : Size / 4)];
  for (int first = 0; first < Size / 16; first += width) {
    words draw[1][4];
    draw[0][0] = lane_index() + (counter.word[0] + static_cast<std::uint32_t>(first));
    philox<Dither::rounds>(counter, key.seed, draw);
    zip(draw[0]);
    TERSUM_UNROLL
    for (int w = 0; w < 4; ++w) {
      store(drawn + 4 * first + w * width, draw[0][w] ^ Dither::mask(key));
    }
  }
  // A draw serves eight neighbours in each of two quarters.
  for (int i = 0; i < Size / 8; ++i) {
    int const quarter = i % 4;
    __builtin_memcpy(to + quarter * (Size / 4) + i / 4 * 8, drawn + 2 * i, 8);
  }
}

//! @brief Stores codes of a byte each where they lie on the wire. `first` is the number of the first.
template <int Size>
TERSUM_SIMD void place_bytes(std::uint8_t* to, int first, words codes)
{
  std::uint8_t* const place = to + first % (Size / 4) / 8 * 32 + first / (Size / 4) * 8 + first % 8;
#if TERSUM_SIMD_WIDTH == 16
  __m128i const eights = _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)codes);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(place), eights);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(place + 32), _mm_unpackhi_epi64(eights, eights));
#else
  store_bytes(place, codes);
#endif
}

//! @brief `group_absmax::round` in every lane, of magnitudes over their group's scale, in units of 1 / block_one. The first is that of
//! value `at` of the chunk.
template <class Quantizer>
TERSUM_SIMD words number_of(floats size,
                            [[maybe_unused]] std::uint8_t const* random,
                            [[maybe_unused]] int at)
{
  floats const one = broadcast(static_cast<float>(block_one));
  size             = size < one ? size : one;
  if constexpr (rounds_floats<Quantizer>) { return nearest_float<Quantizer>(size); }
  integers const magnitude = __builtin_convertvector(size, integers);
  words threshold          = broadcast(256u);
  if constexpr (Quantizer::dither::rounds > 0) { threshold = load_bytes(random + at) * 2 + 1; }
  if constexpr (Quantizer::uniform) {
    words const fine = (words)magnitude * (Quantizer::magnitudes - 1u);
    words const rest = fine & (block_one - 1u);
    return (fine >> log2_exact(block_one)) -
           (words)((integers)rest > (integers)(threshold * (block_one / 512u)));
  } else if constexpr (doubles_marks<Quantizer>) {
    // The exponent of a float, which a fraction that reaches the threshold raises by one. Below the second mark it is that of the sum of
    // both, less one.
    constexpr std::uint32_t power = 1u << 23;
    constexpr float first         = static_cast<float>(Quantizer::mark[1]);
    constexpr std::uint32_t shift = (float_bits(first) >> 23) - 1u;
    floats const value            = __builtin_convertvector(magnitude, floats);
    integers const above          = (integers)to_bits(value);
    integers const below          = (integers)(to_bits(value + first) - power);
    words const place             = (words)(above > below ? above : below);
    return ((place + (power - 1u) - (threshold << 14)) >> 23) - shift;
  } else {
    using tree           = mark_tree<Quantizer>;
    floats const value   = __builtin_convertvector(magnitude, floats);
    words const number   = marks_below<Quantizer>(value);
    floats const mark    = look_up<tree::count>(tree::marks.data(), number);
    floats const gap     = look_up<tree::count>(tree::gaps.data(), number);
    integers const above = __builtin_convertvector((value - mark) * 512.0f, integers);
    return number - (words)(above > __builtin_convertvector(gap, integers) * (integers)threshold);
  }
}

//! @brief Encodes values: codes, and scales of groups. Returns the chunk's scale, which is its largest magnitude. If that is
//! next to nothing the scale is zero, if a value is not finite NaN; the codes are then zeros.
template <class Quantizer, int Size>
TERSUM_TARGET float encode_blocks(float const* values,
                                  [[maybe_unused]] std::uint8_t const* random,
                                  std::uint32_t* to)
{
  using scale         = typename Quantizer::scale;
  constexpr int bits  = Quantizer::bits;
  constexpr int block = Quantizer::block;
  // What blocks have one of takes few instructions that wait for each other, so all blocks do it at the same time.
  constexpr int blocks = Size / block, room = blocks_room<block, Size>;
  alignas(64) float most[extent(room)];
  largest_of_blocks<block, Size>(values, most);
  float const whole = bits_float(largest_of<room>(most));
  if (!(is_finite(whole) && whole >= 0x1p-100f)) {
    for (std::uint32_t i = 0; i < code_words<Quantizer>(Size); ++i) { to[i] = 0; }
    return is_finite(whole) ? 0.0f : bits_float(0x7fffffffu);
  }
  for (int b = 0; b < room; b += width) { store(most + b, load(most + b) / whole); }
  alignas(64) std::uint32_t scales[extent(room)];
  for (int b = 0; b < room; ++b) { scales[b] = scale::encode(most[b]); }
  alignas(64) float inverses[extent(room)];
  for (int b = 0; b < room; ++b) { inverses[b] = scale::decode(scales[b]) * whole; }
  for (int b = 0; b < room; b += width) {
    floats const scaled  = load(inverses + b);
    floats const least   = broadcast(least_block);
    floats const one     = broadcast(static_cast<float>(block_one));
    floats const inverse = one / (scaled >= least ? scaled : least);
    store(inverses + b, scaled >= least ? inverse : floats{});
  }
  // Scales of the blocks of one place in the four quarters follow each other.
  using stored = std::conditional_t<scale::bits == 8, std::uint8_t, std::uint16_t>;
  static_assert(scale::bits == 8 * sizeof(stored));
  stored placed[extent(blocks)];
  for (int b = 0; b < blocks; ++b) {
    placed[b % (blocks / 4) * 4 + b / (blocks / 4)] = static_cast<stored>(scales[b]);
  }
  __builtin_memcpy(to + Size / 32 * bits, placed, sizeof(placed));
  std::uint8_t codes[extent(bits == 8 ? 1 : Size)];
  for (int first = 0; first < Size; first += block) {
    floats const inverse = broadcast(inverses[first / block]);
    // What is written of codes of a byte.
    for (int w = 0; bits == 8 && w < block / 4; w += 16) { fetch_beyond<true>(to + first / 4 + w); }
    TERSUM_UNROLL
    for (int i = first; i < first + block; i += width) {
      if (i % 16 == 0) { fetch_beyond<false>(values + i); }
      words const value = to_bits(load(values + i));
      words const code = number_of<Quantizer>(from_bits(value & 0x7fffffffu) * inverse, random, i) |
                         (value >> 31) << (bits - 1);
      if constexpr (bits == 8) {
        place_bytes<Size>(reinterpret_cast<std::uint8_t*>(to), i, code);
      } else {
        store_bytes(codes + i, code);
      }
    }
  }
  if constexpr (bits < 8) { pack_codes<bits, Size>(codes, to); }
  return whole;
}

//! @brief Adds the decoded codes to values. `whole` is the chunk's scale times some factor.
template <class Quantizer, int Size>
TERSUM_TARGET void add_blocks(std::uint32_t const* from, float whole, float* values)
{
  constexpr int bits = Quantizer::bits, block = Quantizer::block;
  constexpr int scale_bits = Quantizer::scale::bits, in_a_word = 32 / scale_bits;
  constexpr std::uint32_t full = (1u << scale_bits) - 1;
  std::uint8_t codes[extent(Size)];
  unpack_codes<bits, Size>(from, codes);
  for (int first = 0; first < Size; first += block) {
    // The scales of the four quarters take turns.
    int const quarter = first / (Size / 4), number = 4 * (first % (Size / 4) / block) + quarter;
    std::uint32_t const word = from[Size / 32 * bits + number / in_a_word];
    float const scale =
      Quantizer::scale::decode(word >> number % in_a_word * scale_bits & full) * whole;
    for (int i = first; i < first + block; i += width) {
      words const code   = load_bytes(codes + i);
      floats const level = look_up<Quantizer::magnitudes>(Quantizer::level.data(),
                                                          code & (Quantizer::magnitudes - 1u));
      floats const value = from_bits(to_bits(level) | (code >> (bits - 1)) << 31);
      store(values + i, fma(broadcast(scale), value, load(values + i)));
    }
  }
}
