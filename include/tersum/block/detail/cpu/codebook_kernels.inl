// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of codebook codes on one CPU thread, on top of chunk_rows.inl. Rotated values stay in rows, an arrangement that
//! each instruction set has of its own, until they are rotated back or become codes.
//!
//! A *group* is 32 positions of the wire, which one lane of a row block holds: position k of the group is in row k. Its codes
//! are q whole words.

//! @brief The number of the group that a lane of a row block holds.
template <int Size>
TERSUM_SIMD int group_of(int block, int part, int lane)
{
  using shape     = rows_of<Size>;
  int const upper = shape::joined && lane >= 8 ? shape::upper_block : 0;
  return (block + upper) * 8 + 4 * part + lane % 8;
}

//! @brief The first of the 32 rows of a row block.
template <int Size>
TERSUM_SIMD int first_row_of(int block, int part)
{
  return rows_of<Size>::number(block, part, 0) * width;
}

//! @brief The butterflies of index bits 3 to 7, the last ones forward and the first ones backward. If it is to `Fetch`, it
//! prefetches the gradient beyond the chunk for writing.
template <int Size, bool Fetch, chunk_pointer Chunk>
TERSUM_SIMD void wire_rows(float* rows, [[maybe_unused]] Chunk gradient)
{
  using shape          = rows_of<Size>;
  constexpr int stride = shape::split * width;
  for (int block = 0; block < shape::blocks; ++block) {
    for (int part = 0; part < shape::split; ++part) {
      int const start    = first_row_of<Size>(block, part);
      float* const first = rows + start;
      floats v[shape::in_block];
      TERSUM_UNROLL
      for (int k = 0; k < shape::in_block; ++k) {
        if constexpr (Fetch) { fetch_beyond<true>(gradient + (start + k * stride)); }
        v[k] = load(first + k * stride);
      }
      row_butterflies<0, shape::wire_levels>(v);
      TERSUM_UNROLL
      for (int k = 0; k < shape::in_block; ++k) { store(first + k * stride, v[k]); }
    }
  }
}

//! @brief A chunk to rows, signed and rotated without the factor 1 / sqrt(Size), or as it is.
template <int Size, bool Rotate, chunk_pointer From>
TERSUM_TARGET void rotate_to_rows(std::uint64_t sign_key,
                                  std::uint64_t chunk,
                                  From from,
                                  float* rows)
{
  std::uint32_t signs[sign_room<Size>];
  chunk_signs<Size, Rotate>(chunk, sign_key, signs);
  load_rows<Size, Rotate, Rotate>(from, signs, rows);
  if constexpr (Rotate) {
    middle_rows<Size>(rows);
    wire_rows<Size, false>(rows, from);
  }
}

//! @brief Undoes it, multiplied by `scale`. Overwrites the rows.
template <int Size, bool Rotate, chunk_pointer To>
TERSUM_TARGET void rotate_from_rows(
  std::uint64_t sign_key, std::uint64_t chunk, float scale, float* rows, To to)
{
  std::uint32_t signs[sign_room<Size>];
  chunk_signs<Size, Rotate>(chunk, sign_key, signs);
  if constexpr (Rotate) {
    wire_rows<Size, true>(rows, to);
    middle_rows<Size>(rows);
  }
  store_rows<Size, Rotate>(to, signs, scale, rows);
}

//! @brief A chunk between an array in its own order and rows; nothing is rotated.
template <int Size, class Element>
TERSUM_TARGET void array_to_rows(Element const* from, float* rows)
{
  load_rows<Size, false>(from, nullptr, rows);
}

template <int Size, class Element>
TERSUM_TARGET void rows_to_array(float const* rows, Element* to)
{
  store_rows<Size, false>(to, nullptr, 1.0f, rows);
}

//! @brief Stores the packed codes of 32 rows, `Bits` words in each lane, as the words of their groups.
template <int Size, std::size_t Bits>
TERSUM_SIMD void store_codes(int block, int part, words (&packed)[Bits], std::uint32_t* to)
{
  constexpr int bits         = static_cast<int>(Bits);
  std::uint32_t* const first = to + group_of<Size>(block, part, 0) * bits;
  std::uint32_t* const upper = to + group_of<Size>(block, part, width - 1) * bits - 7 * bits;
  if constexpr ((bits & (bits - 1)) == 0 && !(bits == 1 && width == 16)) {
    constexpr int half = width == 16 ? bits / 2 : bits;  // what goes to `first`
    zip(packed);
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      store(w < half ? first + w * width : upper + (w - half) * width, packed[w]);
    }
  } else {
    std::uint32_t lanes[Bits][width];
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { store(lanes[w], packed[w]); }
    for (int lane = 0; lane < width; ++lane) {
      std::uint32_t* const group = (lane < 8 ? first : upper) + lane % 8 * bits;
      TERSUM_UNROLL
      for (int w = 0; w < bits; ++w) { group[w] = lanes[w][lane]; }
    }
  }
}

//! @brief Loads the packed codes of 32 rows: each lane gets the `Bits` words of its group.
template <int Size, std::size_t Bits>
TERSUM_SIMD void load_codes(std::uint32_t const* from, int block, int part, words (&packed)[Bits])
{
  constexpr int bits               = static_cast<int>(Bits);
  std::uint32_t const* const first = from + group_of<Size>(block, part, 0) * bits;
  std::uint32_t const* const upper =
    from + group_of<Size>(block, part, width - 1) * bits - 7 * bits;
  if constexpr ((bits & (bits - 1)) == 0 && !(bits == 1 && width == 16)) {
    constexpr int half = width == 16 ? bits / 2 : bits;
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      packed[w] = load_words(w < half ? first + w * width : upper + (w - half) * width);
    }
    unzip(packed);
  } else {
    std::uint32_t lanes[Bits][width];
    for (int lane = 0; lane < width; ++lane) {
      std::uint32_t const* const group = (lane < 8 ? first : upper) + lane % 8 * bits;
      TERSUM_UNROLL
      for (int w = 0; w < bits; ++w) { lanes[w][lane] = group[w]; }
    }
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { packed[w] = load_words(lanes[w]); }
  }
}

//! @brief The total of the sums of all groups, which the lanes of the row blocks hold, neighbours first.
template <int Size>
TERSUM_SIMD float add_groups(floats (&sums)[rows_of<Size>::parts])
{
  constexpr int parts = rows_of<Size>::parts;
  TERSUM_UNROLL
  for (int i = 0; i < parts; ++i) {
    sums[i] = sums[i] + exchange<1>(sums[i]);
    sums[i] = sums[i] + exchange<2>(sums[i]);
    if constexpr (width >= 8) { sums[i] = sums[i] + exchange<4>(sums[i]); }
  }
  for (int count = parts; count > 1; count /= 2) {
    for (int i = 0; i < count / 2; ++i) { sums[i] = sums[2 * i] + sums[2 * i + 1]; }
  }
  if constexpr (width == 16) { sums[0] = sums[0] + exchange<8>(sums[0]); }
  return sums[0][0];
}

//! @brief The number of the cell that a magnitude, in root mean squares, lies in.
template <class Quantizer>
TERSUM_SIMD words cell_of(floats magnitude)
{
  constexpr int count = Quantizer::magnitudes;
  words cell{};
  // Either as many comparisons as there are boundaries, or, where they are many, two tables, which long vectors permute
  // in registers.
  if constexpr (count <= (width == 16 ? 4 : 16)) {
    TERSUM_UNROLL
    for (int k = 0; k + 1 < count; ++k) {
      cell -= (words)(magnitude >= broadcast(Quantizer::boundaries()[k]));
    }
  } else {
    // At most one boundary lies between two points of this grid.
    using near = cell_grid<Quantizer, 4>;
    using grid = std::conditional_t<near::serves, near, cell_grid<Quantizer>>;
    static_assert(grid::serves,
                  "tersum: the cells of a codebook must be wider than a point of its grid");
    floats const scaled = magnitude * static_cast<float>(grid::points);
    floats const last   = broadcast(static_cast<float>(grid::count - 1));
    auto const point    = __builtin_convertvector(scaled < last ? scaled : last, integers);
    floats const below  = look_up<grid::count>(grid::cells.data(), (words)point);
    cell                = (words) __builtin_convertvector(below, integers);
    cell -= (words)(magnitude >= look_up<count>(Quantizer::boundaries(), cell));
  }
  return cell;
}

//! @brief The results of the steps of a binary search from `Step` on, behind those of the steps before, which `code` holds.
template <class Quantizer, int Step>
TERSUM_SIMD words search_ends(floats value, words code)
{
  if constexpr (Step < Quantizer::bits) {
    // The ends of a step lie together, so that long vectors permute them in registers.
    constexpr int count = 1 << Step;
    floats const end    = look_up<count>(end_tree<Quantizer>.data() + count, code);
    return search_ends<Quantizer, Step + 1>(value, code + code - (words)(value >= end));
  }
  return code;
}

//! @brief The code of a value, in root mean squares: how many ends of cells it is not below.
template <class Quantizer>
TERSUM_SIMD words code_by_ends(floats value)
{
  constexpr int bits = Quantizer::bits;
  words code{};
  if constexpr (width == 4 && bits <= 4) {
    TERSUM_UNROLL
    for (int k = 0; k + 1 < 1 << bits; ++k) {
      code -= (words)(value >= broadcast(Quantizer::ends()[k]));
    }
    return code;
  }
  code -= (words)(value >= broadcast(end_tree<Quantizer>[1]));
  return search_ends<Quantizer, 1>(value, code);
}

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
  // As integers: among these negative values are the least, and without a sign the largest, by their magnitudes.
  integers const most = (integers)to_bits(broadcast(Lines::most));
  integers const bits = (integers)to_bits(value);
  words clamped       = (words)(bits < most ? bits : most);
  if constexpr (Lines::both_signs) {
    words const least = to_bits(broadcast(Lines::least));
    clamped           = clamped < least ? clamped : least;
  }
  constexpr int count = Lines::stretches;
  floats const at     = from_bits(clamped);
  words const stretch = to_bits(fma(at, broadcast(Lines::per_unit), broadcast(12582912.0f)));
  floats const slope  = look_up<count>(Lines::table.slope, stretch);
  return to_bits(fma(at, slope, look_up<count>(Lines::table.start, stretch)));
}

//! @brief What is rounded of a value: itself, or its magnitude.
template <class Lines>
TERSUM_SIMD floats rounded_part(floats value)
{
  return Lines::both_signs ? value : from_bits(to_bits(value) & 0x7fffffffu);
}

//! @brief The codes of 32 rows, which are a byte each. Four rows make a vector of words, of which two vectors of 16-bit
//! numbers have the first and third, and the second and fourth. All rows take each step together, because its instructions
//! wait long for each other.
template <class Quantizer>
TERSUM_SIMD void codes_by_lines(float const* rows,
                                int stride,
                                floats scale,
                                std::uint32_t* to,
                                floats& product,
                                words (&packed)[8])
{
  using lines                 = cell_lines<Quantizer>;
  constexpr int fraction      = lines::fraction_bits;
  constexpr std::uint32_t all = (lines::count - 1u) * 0x00010001u;
  words cells[16];
  for (int k = 0; k < 16; ++k) {
    float const* const first = rows + (k / 2 * 4 + k % 2) * stride;
    fetch_beyond<true>(to + k * (width / 2));  // each line twice instead of a branch
    words const low  = height_of<lines>(rounded_part<lines>(load(first)) * scale);
    words const high = height_of<lines>(rounded_part<lines>(load(first + 2 * stride)) * scale);
    cells[k]         = join_shorts(low >> fraction, high << (16 - fraction)) & all;
  }
  for (int k = 0; k < 16; ++k) {
    float const* const first = rows + (k / 2 * 4 + k % 2) * stride;
    floats begins[2];
    look_up_two(lines::begins, cells[k], begins);
    auto const low  = (words)(rounded_part<lines>(load(first)) * scale < begins[0]);
    auto const high = (words)(rounded_part<lines>(load(first + 2 * stride)) * scale < begins[1]);
    cells[k]        = (words)_mm512_add_epi16((__m512i)cells[k], (__m512i)join_shorts(low, high));
  }
  for (int w = 0; w < 8; ++w) {
    floats value[4], level[4];
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) { value[i] = load(rows + (4 * w + i) * stride); }
    packed[w] = cells[2 * w] | cells[2 * w + 1] << 8;
    if constexpr (!lines::both_signs) {
      // Two signs in the highest bits of both halves.
      words const even = join_shorts(to_bits(value[0]) >> 16, to_bits(value[2]));
      words const odd  = join_shorts(to_bits(value[1]) >> 16, to_bits(value[3]));
      packed[w] |= (even >> 8 & 0x00800080u) | (odd & 0x80008000u);
    }
    TERSUM_UNROLL
    for (int i = 0; i < 2; ++i) {
      floats levels[2];
      look_up_two(lines::levels, cells[2 * w + i], levels);
      level[i]     = levels[0];
      level[i + 2] = levels[1];
    }
    TERSUM_UNROLL
    for (int i = 0; i < 4; ++i) { product = fma(rounded_part<lines>(value[i]), level[i], product); }
  }
}
#endif

//! @brief Whether cells are found by lines.
template <class Quantizer>
inline constexpr bool by_lines = [] {
  if constexpr (width == 16 && Quantizer::bits == 8 &&
                (by_ends<Quantizer> || table_codebook<Quantizer>)) {
    return cell_lines<Quantizer>::serves;
  }
  return false;
}();

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

//! @name Levels on lines, as `level_lines` has them: places as floats
//! @{
template <class Lines>
TERSUM_SIMD floats place_on_lines(floats magnitude)
{
  floats const one   = from_bits(rounded_bits<0>(magnitude, Lines::inverse));
  floats const two   = from_bits(rounded_bits<Lines::start_2>(magnitude, Lines::inverse / 2));
  floats const eight = from_bits(rounded_bits<Lines::start_8>(magnitude, Lines::inverse / 8));
  floats const last  = from_bits(broadcast(Lines::last_place));
  floats const lower = two < one ? two : one;
  floats const other = last < eight ? last : eight;
  return other < lower ? other : lower;
}
template <class Lines>
TERSUM_SIMD floats level_on_lines(floats place)
{
  // All of it is exact.
  floats const x     = (place - Lines::lift) * Lines::step;
  floats const two   = x * 2.0f - Lines::below_2;
  floats const eight = x * 8.0f - Lines::below_8;
  floats const upper = x < two ? two : x;
  return upper < eight ? eight : upper;
}
//! @}

//! @brief The codes of a row. `scale` is one over the root mean square. Adds values times their levels to `product`.
template <class Quantizer>
TERSUM_SIMD words code_row(floats value, floats scale, floats& product)
{
  constexpr int bits = Quantizer::bits;
  if constexpr (by_ends<Quantizer>) {
    words const code = code_by_ends<Quantizer>(value * scale);
    product          = fma(value, look_up<1 << bits>(Quantizer::levels(), code), product);
    return code;
  } else {
    words const v          = to_bits(value);
    floats const magnitude = from_bits(v & 0x7fffffffu);
    words number;
    floats level;
    if constexpr (has_lines<Quantizer>) {
      using lines        = typename Quantizer::lines;
      floats const place = place_on_lines<lines>(magnitude * scale);
      number             = to_bits(place) - lines::first_place;
      level              = level_on_lines<lines>(place);
    } else {
      number = cell_of<Quantizer>(magnitude * scale);
      level  = look_up<Quantizer::magnitudes>(Quantizer::levels(), number);
    }
    product = fma(magnitude, level, product);
    return number | (v >> 31) << (bits - 1);
  }
}

//! @brief The levels of codes, which lie in the low bits.
template <class Quantizer>
TERSUM_SIMD floats level_row(words code)
{
  constexpr int bits = Quantizer::bits;
  if constexpr (by_ends<Quantizer>) {
    return look_up<1 << bits>(Quantizer::levels(), code & ((1u << bits) - 1u));
  } else {
    words const number = code & ((1u << (bits - 1)) - 1u);
    floats level;
    if constexpr (has_lines<Quantizer>) {
      using lines = typename Quantizer::lines;
      level       = level_on_lines<lines>(from_bits(number + lines::first_place));
    } else {
      level = look_up<Quantizer::magnitudes>(Quantizer::levels(), number);
    }
    words const sign = code >> (bits - 1) << 31;
    return from_bits(to_bits(level) ^ sign);
  }
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
      floats product{};
      words packed[extent(bits)];
      if constexpr (by_lines<Quantizer>) {
#if TERSUM_SIMD_WIDTH == 16
        codes_by_lines<Quantizer>(first, stride, scale, to + block * bits * width, product, packed);
#endif
      } else {
        words codes[32];
        for (int k = 0; k < 32; ++k) {
          if (k % 4 == 0) {
            fetch_beyond<true>(to + ((block * shape::split + part) * bits + k * bits / 32) * width);
          }
          codes[k] = code_row<Quantizer>(load(first + k * stride), scale, product);
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
      sums[block * shape::split + part] = product;
      store_codes<Size>(block, part, packed, to);
    }
  }
  return energy / add_groups<Size>(sums);
}

//! @brief Adds scale times the levels of codes to the rows, or overwrites the rows if they are `fresh`. If `Rounded`, products
//! are rounded before they are added.
template <class Quantizer, int Size, bool Rounded>
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
      load_codes<Size>(from, block, part, packed);
      words codes[32];
      TERSUM_UNROLL
      for (int k = 0; k < 32; ++k) {
        int const word  = k * bits / 32;
        int const shift = k * bits % 32;
        codes[k]        = packed[word] >> shift;
        if (shift + bits > 32) { codes[k] |= packed[word + 1] << (32 - shift); }
      }
      for (int k = 0; k < 32; ++k) {
        floats const value  = level_row<Quantizer>(codes[k]);
        floats const before = load(fresh ? zeros : first + k * stride);
        if constexpr (Rounded) {
          store(first + k * stride, fma(value, broadcast(scale), floats{}) + before);
        } else {
          store(first + k * stride, fma(value, broadcast(scale), before));
        }
      }
    }
  }
}
