// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of codebook codes on one CPU thread, on top of chunk_rows.inl: their values and packed codes in rows, and the way from one to
//! the other. Rotated values stay in rows,
//! an arrangement that each instruction set has of its own, until they are rotated back or become codes.

template <class Vector>
struct stored_lanes {
  typename vector_value<Vector>::element at[width];
  TERSUM_OPERATOR explicit stored_lanes(Vector v) { __builtin_memcpy(at, &v, sizeof(v)); }
};

TERSUM_OPERATOR vector_value<floats> values_of(float const (&of)[width]) { return load(of); }
TERSUM_OPERATOR vector_value<words> values_of(std::uint32_t const (&of)[width]) { return load(of); }

// Arrays, not elements of vectors: so compilers make vectors of the loop again if the function has no branches.
template <class Function, class... Vectors>
TERSUM_OPERATOR auto by_lanes(Function const& function, vector_value<Vectors> const&... of)
{
  decltype(function(of.v[0]...)) results[width];
  [&](auto const&... from) {
    for (int lane = 0; lane < width; ++lane) { results[lane] = function(from.at[lane]...); }
  }(stored_lanes<Vectors>(of.v)...);
  return values_of(results);
}

//! @brief A chunk to rows, signed and rotated without the factor 1 / sqrt(Size), or as it is.
template <int Size, bool Rotate = true, chunk_pointer From>
TERSUM_TARGET void rotate_to_rows(std::uint64_t sign_key,
                                  std::uint64_t chunk,
                                  From from,
                                  float* rows)
{
  std::uint32_t signs[sign_room<Size>];
  chunk_signs<Size, Rotate>(chunk, sign_key, signs);
  load_rows<Size, Rotate, Rotate>(from, signs, rows);
  if (Rotate) {
    middle_rows<Size>(rows);
    wire_rows<Size, false>(rows, from);
  }
}

//! @brief Undoes it, multiplied by `scale`. Overwrites the rows.
template <int Size, bool Rotate = true, chunk_pointer To>
TERSUM_TARGET void rotate_from_rows(
  std::uint64_t sign_key, std::uint64_t chunk, float scale, float* rows, To to)
{
  std::uint32_t signs[sign_room<Size>];
  chunk_signs<Size, Rotate>(chunk, sign_key, signs);
  if (Rotate) {
    wire_rows<Size, true>(rows, to);
    middle_rows<Size>(rows);
  }
  store_rows<Size, Rotate>(to, signs, scale, rows);
}

#if TERSUM_SIMD_WIDTH >= 8
//! @brief A vector that repeats a table of 2 to `width` entries. It is one load: g++ 12 makes stores of a copy, for which loads wait.
template <int Count>
TERSUM_SIMD floats load_table(float const* table)
{
  if (Count == width) { return load(table); }
  auto const few = Count == 2 ? (__m128)_mm_loadu_si64(table) : _mm_loadu_ps(table);
#if TERSUM_SIMD_WIDTH == 16
  if (Count == 8) { return (floats)_mm512_maskz_broadcast_f32x8(0xffff, _mm256_loadu_ps(table)); }
  return (floats)_mm512_maskz_broadcast_f32x4(0xffff, few);
#else
  return (floats)_mm256_set_m128(few, few);
#endif
}
#endif

//! @brief table[number] for every lane, of a table of `Count` entries. Small tables are permuted in registers.
template <int Count>
TERSUM_SIMD floats look_up(float const* table, words number)
{
  static_assert((Count & (Count - 1)) == 0);
  if (Count == 1) { return broadcast(table[0]); }
#if TERSUM_SIMD_WIDTH >= 8
  if constexpr (Count <= width) {
    floats const entries = load_table<Count>(table);
#if TERSUM_SIMD_WIDTH == 16
    return (floats)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)number, (__m512)entries);
#else
    return (floats)_mm256_permutevar8x32_ps((__m256)entries, (__m256i)number);
#endif
#if TERSUM_SIMD_WIDTH == 16
  } else if constexpr (Count == 2 * width) {
    return (floats)_mm512_permutex2var_ps(
      (__m512)load(table), (__m512i)number, (__m512)load(table + width));
#endif
  } else if constexpr (Count <= 8 * width) {
    floats const low  = look_up<Count / 2>(table, number);
    floats const high = look_up<Count / 2>(table + Count / 2, number);
    return (number & static_cast<std::uint32_t>(Count / 2)) != 0 ? high : low;
  } else {
#if TERSUM_SIMD_WIDTH == 16 && !defined(__clang__)
    // Without optimization g++'s intrinsic is a macro, in which -Wsign-conversion warns of the mask.
    return (floats)__builtin_ia32_gathersiv16sf(
      floats{}, table, (integers)number, short{-1}, sizeof(float));
#elif TERSUM_SIMD_WIDTH == 16
    return (floats)_mm512_mask_i32gather_ps(
      _mm512_setzero_ps(), 0xffff, (__m512i)number, table, sizeof(float));
#else
    return (floats)_mm256_i32gather_ps(table, (__m256i)number, sizeof(float));
#endif
  }
#else
  if constexpr (Count <= 4) {
    auto const of_two = [&](int first) {
      float const next = table[minimum(first + 1, Count - 1)];
      return (number & 1u) != 0 ? broadcast(next) : broadcast(table[first]);
    };
    floats const low = of_two(0), high = of_two(minimum(2, Count - 1));
    return Count <= 2 ? low : (number & 2u) != 0 ? high : low;
  } else {
    floats found;
    TERSUM_UNROLL
    for (int lane = 0; lane < width; ++lane) { found[lane] = table[number[lane]]; }
    return found;
  }
#endif
}

template <int Count>
TERSUM_OPERATOR vector_value<floats> look_up(float const* table, vector_value<words> const& number)
{
  return look_up<Count>(table, number.v);
}

//! @brief a * b + c of what is not negative, where the lowest `bits` of the sum do not matter.
TERSUM_OPERATOR vector_value<floats> fma_above(vector_value<floats> const& a,
                                               vector_value<floats> const& b,
                                               vector_value<floats> const& c,
                                               [[maybe_unused]] int bits)
{
#if TERSUM_SIMD_WIDTH == 4 && defined(__SSE2__) && !defined(__FMA__)
  return (floats)fuse_above((__m128)a.v, (__m128)b.v, (__m128)c.v, bits);
#else
  return fma(a.v, b.v, c.v);
#endif
}

// The cells of a codebook that values lie in, in every lane, by lines.

#if TERSUM_SIMD_WIDTH == 16
//! @brief 32 entries of a table of 16-bit words, which are permuted in registers. Numbers may have other bits above their own.
template <int Count>
TERSUM_SIMD words look_up_shorts(std::uint16_t const* table, words numbers)
{
  static_assert(Count >= 64 && (Count & (Count - 1)) == 0);
  if constexpr (Count == 64) {
    return (words)_mm512_permutex2var_epi16(
      _mm512_load_si512(table), (__m512i)numbers, _mm512_load_si512(table + 32));
  } else {
    words const low  = look_up_shorts<Count / 2>(table, numbers);
    words const high = look_up_shorts<Count / 2>(table + Count / 2, numbers);
    __mmask32 const above =
      _mm512_test_epi16_mask((__m512i)numbers, _mm512_set1_epi16(static_cast<short>(Count / 2)));
    return (words)_mm512_mask_blend_epi16(above, (__m512i)low, (__m512i)high);
  }
}

//! @brief The lower halves of `low`, and in the upper ones the upper halves of `high`.
TERSUM_SIMD words join_shorts(words low, words high)
{
  return (words)_mm512_mask_blend_epi16(0xaaaaaaaau, (__m512i)low, (__m512i)high);
}

//! @brief table[number] for two vectors at once, whose numbers are the lower and the upper halves of `numbers`.
template <std::size_t Count>
TERSUM_SIMD void look_up_two(split_table<Count> const& table, words numbers, floats (&out)[2])
{
  constexpr int count = static_cast<int>(Count);
  words const low     = look_up_shorts<count>(table.low, numbers);
  words const high    = look_up_shorts<count>(table.high, numbers);
  out[0]              = from_bits(join_shorts(low, high << 16));
  out[1]              = from_bits(join_shorts(low >> 16, high));
}

//! @brief The number of a value's cell or one more, above a fraction.
template <class Lines>
TERSUM_SIMD words height_of(floats value)
{
  integers const most = (integers)to_bits(broadcast(Lines::most));
  integers const bits = (integers)to_bits(value);
  constexpr int count = Lines::stretches;
  floats const at     = from_bits((words)(bits < most ? bits : most));
  words const stretch = to_bits(fma(at, broadcast(Lines::per_unit), broadcast(12582912.0f)));
  floats const slope  = look_up<count>(Lines::table.slope, stretch);
  return to_bits(fma(at, slope, look_up<count>(Lines::table.start, stretch)));
}

TERSUM_SIMD floats magnitude_of(floats value) { return from_bits(to_bits(value) & 0x7fffffffu); }

//! @brief The codes of 32 rows, which are a byte each. Four rows make a vector of words, of which two vectors of 16-bit
//! numbers have the first and third, and the second and fourth. All rows take a step together: its instructions wait long.
template <class Quantizer>
TERSUM_SIMD void codes_by_lines(float const* rows,
                                int stride,
                                floats scale,
                                std::uint32_t* to,
                                floats& product,
                                words (&packed)[8])
{
  using lines                 = typename Quantizer::byte_lines;
  constexpr int fraction      = lines::fraction_bits;
  constexpr std::uint32_t all = (lines::count - 1u) * 0x00010001u;
  words cells[16];
  for (int k = 0; k < 16; ++k) {
    float const* const first = rows + (k / 2 * 4 + k % 2) * stride;
    fetch_beyond<true>(to + k * (width / 2));  // each line twice instead of a branch
    words const low  = height_of<lines>(magnitude_of(load(first)) * scale);
    words const high = height_of<lines>(magnitude_of(load(first + 2 * stride)) * scale);
    cells[k]         = join_shorts(low >> fraction, high << (16 - fraction)) & all;
  }
  for (int k = 0; k < 16; ++k) {
    float const* const first = rows + (k / 2 * 4 + k % 2) * stride;
    floats begins[2];
    look_up_two(lines::begins, cells[k], begins);
    auto const low  = (words)(magnitude_of(load(first)) * scale < begins[0]);
    auto const high = (words)(magnitude_of(load(first + 2 * stride)) * scale < begins[1]);
    cells[k]        = (words)_mm512_add_epi16((__m512i)cells[k], (__m512i)join_shorts(low, high));
  }
  for (int w = 0; w < 8; ++w) {
    floats value[4], level[4];
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) { value[i] = load(rows + (4 * w + i) * stride); }
    packed[w] = cells[2 * w] | cells[2 * w + 1] << 8;
    // Two signs in the highest bits of both halves.
    words const even = join_shorts(to_bits(value[0]) >> 16, to_bits(value[2]));
    words const odd  = join_shorts(to_bits(value[1]) >> 16, to_bits(value[3]));
    packed[w] |= (even >> 8 & 0x00800080u) | (odd & 0x80008000u);
    TERSUM_UNROLL
    for (int i = 0; i < 2; ++i) {
      floats levels[2];
      look_up_two(lines::levels, cells[2 * w + i], levels);
      level[i]     = levels[0];
      level[i + 2] = levels[1];
    }
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) { product = fma(magnitude_of(value[i]), level[i], product); }
  }
}
#endif

//! @brief Whether cells are found by lines.
template <class Quantizer>
inline constexpr bool by_lines = false;
template <has_byte_lines Quantizer>
requires(width == 16 &&
         Quantizer::bits ==
           8) inline constexpr bool by_lines<Quantizer> = Quantizer::byte_lines::serves;

//! @brief The total of the sums of all groups, which the lanes of the row blocks hold, neighbours first.
template <int Size>
TERSUM_SIMD float add_groups(floats (&sums)[rows_of<Size>::parts])
{
  constexpr int parts = rows_of<Size>::parts;
  TERSUM_UNROLL
  for (int i = 0; i < parts; ++i) { sums[i] = add_across<1, 8>(sums[i]); }
  for (int count = parts; count > 1; count /= 2) {
    for (int i = 0; i < count / 2; ++i) { sums[i] = sums[2 * i] + sums[2 * i + 1]; }
  }
  return add_across<8, 16>(sums[0])[0];
}

//! @brief The sums of squares of the groups of a chunk, added up.
template <int Size>
TERSUM_SIMD float square_rows(float const* rows)
{
  using shape               = rows_of<Size>;
  constexpr int stride      = shape::split * width;
  floats sums[shape::parts] = {};
  // Of all groups at once, so that sums do not wait for each other.
  for (int k = 0; k < 32; ++k) {
    TERSUM_UNROLL
    for (int i = 0; i < shape::parts; ++i) {
      floats const v =
        load(rows + first_row_of<Size>(i / shape::split, i % shape::split) + k * stride);
      sums[i] = fma(v, v, sums[i]);
    }
  }
  return add_groups<Size>(sums);
}

//! @brief Encodes rows. Returns the chunk's scale, |v|^2 / <v, levels>, with which the estimate is unbiased. If the energy
//! is next to nothing the scale is zero, if it is not finite NaN; the codes are then zeros.
template <class Quantizer, int Size>
TERSUM_TARGET float quantize_rows(float const* rows, std::uint32_t* to)
{
  using shape          = rows_of<Size>;
  constexpr int bits   = Quantizer::bits;
  constexpr int stride = shape::split * width;
  float const energy   = square_rows<Size>(rows);
  if (!(energy >= 0x1p-100f && is_finite(energy))) {
    for (int i = 0; i < Size / 32 * bits; ++i) { to[i] = 0; }
    return energy < 0x1p-100f ? 0.0f : bits_float(0x7fffffffu);
  }
  // One over the root mean square.
  floats const scale = broadcast(::sqrtf(static_cast<float>(Size) / energy));
  floats sums[shape::parts];
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      float const* const first = rows + first_row_of<Size>(block, part);
      vector_value<floats> product{};
      words packed[extent(bits)];
      if constexpr (by_lines<Quantizer>) {
#if TERSUM_SIMD_WIDTH == 16
        codes_by_lines<Quantizer>(
          first, stride, scale, to + block * bits * width, product.v, packed);
#endif
      } else {
        words codes[32];
        for (int k = 0; k < 32; ++k) {
          if (k % 4 == 0) {
            fetch_beyond<true>(to + ((block * shape::split + part) * bits + k * bits / 32) * width);
          }
          codes[k] =
            code_value<Quantizer, vector_value<floats>>(load(first + k * stride), scale, product).v;
        }
        TERSUM_UNROLL
        for (int w = 0; w < bits; ++w) { packed[w] = words{}; }
        TERSUM_UNROLL
        for (int k = 0; k < 32; ++k) {
          int const word  = k * bits / 32;
          int const shift = k * bits % 32;
          packed[word] |= codes[k] << shift;
          if (shift + bits > 32) { packed[word + 1] |= codes[k] >> (32 - shift); }
        }
      }
      sums[block * shape::split + part] = product.v;
      move_codes<Size, true>(block, part, packed, to);
    }
  }
  return energy / add_groups<Size>(sums);
}

//! @brief Adds scale times the levels of codes to the rows, or overwrites the rows if they are `fresh`.
template <class Quantizer, int Size>
TERSUM_TARGET void add_levels(std::uint32_t const* from, float scale, float* rows, bool fresh)
{
  using shape          = rows_of<Size>;
  constexpr int bits   = Quantizer::bits;
  constexpr int stride = shape::split * width;
  float const zeros[width]{};
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      float* const first = rows + first_row_of<Size>(block, part);
      words packed[extent(bits)];
      move_codes<Size, false>(block, part, packed, from);
      words codes[32];
      TERSUM_UNROLL
      for (int k = 0; k < 32; ++k) {
        int const word  = k * bits / 32;
        int const shift = k * bits % 32;
        codes[k]        = packed[word] >> shift;
        if (shift + bits > 32) { codes[k] |= packed[word + 1] << (32 - shift); }
      }
      for (int k = 0; k < 32; ++k) {
        floats const value  = level_of_code<Quantizer>(vector_value<words>(codes[k])).v;
        floats const before = load(fresh ? zeros : first + k * stride);
        store(first + k * stride, fma(value, broadcast(scale), before));
      }
    }
  }
}
