// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of groups with two ends, on a thread of the CPU and on the threads of a kernel, to the same bits.
//!
//! A thread of a kernel has eight neighbouring coordinates in each quarter of its chunk, and a group of B coordinates belongs to B / 8
//! neighbouring threads. What a group gathers is joined over the eight in order, and then pairwise over the threads.

#include <tersum/baseline/detail/cpu_group_absmax.hpp>
#include <tersum/baseline/detail/group_units.hpp>
#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/block_part_codes.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunk_codes.hpp>
#include <tersum/quantize/detail/block_codebook.hpp>
#include <tersum/random/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Two ends in units of the gradient, and what a value's place between them is multiplied by.
struct group_line {
  float begin;    //!< What code 0 stands for.
  float step;     //!< From a code to the next.
  float inverse;  //!< 256 over the step, or zero.
};

//! @brief The line between the ends that a group's word says, times the chunk's scale.
template <class Quantizer, class Arithmetic>
[[nodiscard]] TERSUM_INLINE group_line line_of(Arithmetic const&, std::uint32_t ends, float whole)
{
  float const low    = bits_float(ends << 16);
  float const high   = bits_float(ends & 0xffff0000u);
  float const length = Arithmetic::multiply(Arithmetic::subtract(high, low), whole);
  float const steps  = static_cast<float>(Quantizer::last);
  return {Arithmetic::multiply(low, whole),
          Arithmetic::divide(length, steps),
          length >= least_block ? Arithmetic::divide(256.0f * steps, length) : 0.0f};
}

//! @brief A value's place between the ends, in units of 1/256 of a step: 0 to 256 times the last code.
template <class Quantizer, class Arithmetic>
[[nodiscard]] TERSUM_INLINE std::int32_t place_between(Arithmetic const&,
                                                       group_line const& line,
                                                       float value)
{
  float const above = Arithmetic::subtract(value, line.begin);
  float const place = Arithmetic::fma(above, line.inverse, 0.5f);
  // Means are no ends, so that values may lie far beyond them.
  return static_cast<std::int32_t>(minimum(maximum(place, 0.0f), 256.0f * Quantizer::last));
}

template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE float value_on(Arithmetic const&,
                                           group_line const& line,
                                           std::uint32_t code)
{
  return Arithmetic::fma(static_cast<float>(code), line.step, line.begin);
}

//! @brief The word of a group's ends, counted from the chunk's codes. `thread` has its first coordinates.
template <class Quantizer>
[[nodiscard]] TERSUM_INLINE unsigned ends_word(int size, unsigned thread, unsigned quarter) noexcept
{
  return static_cast<unsigned>(size / 32 * Quantizer::bits) + thread / (Quantizer::block / 8) * 4 +
         quarter;
}

//! @brief One value after the other. Values lie as in the gradient.
template <affine_quantizer Quantizer, int Size>
struct chunk_codes<Quantizer, Size> {
  static constexpr int block = Quantizer::block;
  static constexpr int bits  = Quantizer::bits;

  template <class Dither>
  [[nodiscard]] static float encode(instruction_set set,
                                    dither_key const& key,
                                    std::uint64_t chunk,
                                    float const* values,
                                    std::uint32_t* to)
  {
    std::fill_n(to, code_words<Quantizer>(Size), 0u);
    std::uint32_t most = 0;
    for (int i = 0; i < Size; ++i) { most = maximum(most, float_bits(values[i]) & 0x7fffffffu); }
    float const whole = bits_float(most);
    if (!is_finite(whole)) { return bits_float(0x7fffffffu); }
    if (whole < 0x1p-100f) { return 0.0f; }
    alignas(64) std::uint8_t random[extent(Size)] = {};
    if constexpr (Dither::rounds > 0) { draw_bytes<Dither, Size>(set, key, chunk, random); }
    for_each_group(to, [&](std::uint32_t& word, int first, unsigned position) {
      word                  = ends_of(values + first, whole);
      group_line const line = line_of<Quantizer>(host_group{}, word, whole);
      for (int i = 0; i < block; ++i) {
        float const value = values[first + i];
        write_code<bits>(to,
                         position_of(position, i),
                         Quantizer::code(value,
                                         place_between<Quantizer>(host_group{}, line, value),
                                         random[first + i]));
      }
    });
    return whole;
  }

  template <bool Rounded = false>
  static void add(
    instruction_set, std::uint32_t const* from, float scale, float* values, bool fresh)
  {
    static_assert(!Rounded, "tersum: hops take codebooks with tables");
    if (fresh) { std::fill_n(values, Size, 0.0f); }
    for_each_group(from, [&](std::uint32_t word, int first, unsigned position) {
      group_line const line = line_of<Quantizer>(host_group{}, word, scale);
      for (int i = 0; i < block; ++i) {
        std::uint32_t const code =
          read_code<bits>(from, position_of(position, i)) & Quantizer::last;
        values[first + i] = values[first + i] + value_on(host_group{}, line, code);
      }
    });
  }

 private:
  //! visit(word of the ends, first coordinate, position of its code).
  template <class Word, class Visitor>
  static void for_each_group(Word* words, Visitor const& visit)
  {
    for (unsigned quarter = 0; quarter < 4; ++quarter) {
      for (unsigned thread = 0; thread < Size / 32; thread += block / 8) {
        visit(words[ends_word<Quantizer>(Size, thread, quarter)],
              static_cast<int>(quarter * (Size / 4) + 8 * thread),
              32 * thread + 8 * quarter);
      }
    }
  }

  //! Eight neighbours of a group are eight positions, and the next eight lie 32 positions further on.
  [[nodiscard]] static int position_of(unsigned first, int i)
  {
    return static_cast<int>(first) + i / 8 * 32 + i % 8;
  }

  [[nodiscard]] static std::uint32_t ends_of(float const* values, float whole)
  {
    constexpr int threads = block / 8;
    float fields[extent(threads)][extent(Quantizer::fields)];
    for (int t = 0; t < threads; ++t) {
      Quantizer::first(values[8 * t], fields[t]);
      for (int i = 1; i < 8; ++i) {
        float one[extent(Quantizer::fields)];
        Quantizer::first(values[8 * t + i], one);
        Quantizer::join(host_group{}, one, fields[t]);
      }
    }
    for (int step = 1; step < threads; step *= 2) {
      for (int t = 0; t < threads; t += 2 * step) {
        Quantizer::join(host_group{}, fields[t + step], fields[t]);
      }
    }
    return Quantizer::ends(host_group{}, fields[0], whole);
  }
};

//! @brief The same for the threads of a kernel. The chunk's scale is its largest magnitude: NaN if that is not finite, and zero, as are
//! the words, if it is next to nothing.
template <affine_quantizer Quantizer>
struct part_codes<Quantizer> {
  static constexpr int bits = Quantizer::bits;

  template <class Part>
  TERSUM_BODY static void add(Part const& own,
                              std::uint32_t const* codes,
                              float scale,
                              float (&v)[32])
  {
    using context = typename Part::context_type;
    context_arithmetic<context> const arithmetic{};
    std::uint32_t words[extent(bits)];
    load_codes(own.ctx, codes + own.mine.thread * bits, words);
    TERSUM_UNROLL
    for (unsigned r = 0; r < 4; ++r) {
      group_line const line = line_of<Quantizer>(
        arithmetic,
        own.ctx.load(codes + ends_word<Quantizer>(Part::size, own.mine.thread, r)),
        scale);
      TERSUM_UNROLL
      for (unsigned i = 0; i < 8; ++i) {
        unsigned const k     = 8 * r + i;
        unsigned const shift = k * bits % 32;
        std::uint32_t code   = words[k * bits / 32] >> shift;
        if (shift + bits > 32) { code |= words[k * bits / 32 + 1] << (32 - shift); }
        v[k] = context::add(v[k], value_on(arithmetic, line, code & Quantizer::last));
      }
    }
  }

  template <class Dither, class Part>
  TERSUM_BODY static void encode(Part const& own,
                                 float const (&v)[32],
                                 dither_key const& key,
                                 float share_of,
                                 std::uint32_t* part)
  {
    using context = typename Part::context_type;
    context_arithmetic<context> const arithmetic{};
    std::uint32_t most = 0;
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { most = maximum(most, context::bits(v[k]) & 0x7fffffffu); }
    float const whole = context::from_bits(chunk_maximum(own.ctx, most, own.mine, own.storage));
    bool const sound  = is_finite(whole) && whole >= 0x1p-100f;
    float const unit  = sound ? whole : 1.0f;
    std::uint32_t ends[4];
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) { ends[r] = gather(own.ctx, v, 8 * r, unit); }
    if (!own.mine.active || own.place.level == 0) { return; }
    if (own.mine.thread == 0) {
      float const said = is_finite(whole) ? 0.0f : context::from_bits(0x7fffffffu);
      own.ctx.store(part + own.map.scale_word(own.place.index),
                    context::bits(context::multiply(sound ? whole : said, share_of)));
    }
    std::uint32_t words[extent(bits)] = {};
    philox_block draw{};
    std::uint32_t mask = 0;
    if constexpr (Dither::rounds > 0) { mask = Dither::mask(key); }
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) {
      if constexpr (Dither::rounds > 0) {
        if (r % 2 == 0) {
          std::uint64_t const first = own.mine.chunk * (Part::size / 16) + 2 * own.mine.thread;
          draw                      = philox4x32<Dither::rounds, typename context::product>(
            Dither::counter(first + static_cast<unsigned>(r / 2), key), key.seed);
        }
      }
      group_line const line = line_of<Quantizer>(arithmetic, ends[r], unit);
      TERSUM_UNROLL
      for (int i = 0; i < 8; ++i) {
        int const k              = 8 * r + i;
        float const value        = sound ? v[k] : 0.0f;
        std::uint32_t const byte = threshold_of<Dither>(draw, mask, k % 16) / 2;
        std::uint32_t const coded =
          Quantizer::code(value, place_between<Quantizer>(arithmetic, line, value), byte);
        int const shift = k * bits % 32;
        words[k * bits / 32] |= coded << shift;
        if (shift + bits > 32) { words[k * bits / 32 + 1] |= coded >> (32 - shift); }
      }
    }
    std::uint32_t* const codes = part + own.place.word;
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { words[w] = sound ? words[w] : 0u; }
    store_codes(own.ctx, codes + own.mine.thread * bits, words);
    if (own.mine.thread % (Quantizer::block / 8) == 0) {
      TERSUM_UNROLL
      for (unsigned r = 0; r < 4; ++r) {
        own.ctx.store(codes + ends_word<Quantizer>(Part::size, own.mine.thread, r),
                      sound ? ends[r] : 0u);
      }
    }
  }

 private:
  //! The ends of the group that eight of a thread's values belong to. All threads of the warp must call.
  template <class Context>
  TERSUM_BODY static std::uint32_t gather(Context const& ctx,
                                          float const (&v)[32],
                                          int from,
                                          float whole)
  {
    constexpr int fields = Quantizer::fields;
    context_arithmetic<Context> const arithmetic{};
    float field[extent(fields)];
    Quantizer::first(v[from], field);
    TERSUM_UNROLL
    for (int i = 1; i < 8; ++i) {
      float one[extent(fields)];
      Quantizer::first(v[from + i], one);
      Quantizer::join(arithmetic, one, field);
    }
    TERSUM_UNROLL
    for (unsigned step = 1; step < Quantizer::block / 8; step *= 2) {
      float other[extent(fields)];
      TERSUM_UNROLL
      for (int f = 0; f < fields; ++f) { other[f] = ctx.shuffle_xor(field[f], step); }
      Quantizer::join(arithmetic, other, field);
    }
    return Quantizer::ends(arithmetic, field, whole);
  }
};

}  // namespace tersum::inline v0::detail
