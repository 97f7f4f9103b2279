// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The cells of a codebook that values lie in, in every lane, by lines.

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
inline constexpr bool by_lines = [] {
  if constexpr (width == 16 && has_byte_lines<Quantizer> && Quantizer::bits == 8) {
    return Quantizer::byte_lines::serves;
  }
  return false;
}();
