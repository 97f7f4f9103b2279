// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of a thread's 32 coordinates in groups with scales of their own: kernel body parts.
//!
//! A thread has eight neighbouring coordinates in each quarter of its chunk, and a group of B coordinates belongs to B / 8
//! neighbouring threads. The scales of the four groups that begin with the same thread are in one word, or two.

#pragma once

#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/block/thread_norm.hpp>
#include <tersum/coder/detail/block_scaled_codes.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/detail/block_codebook.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/thread_scaled_floats.hpp>
#include <tersum/random/philox.hpp>
#include <tersum_baselines/detail/group_units.hpp>
#include <tersum_baselines/group_quantizer.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

template <group_quantizer Quantizer>
inline constexpr bool has_tables_of<Quantizer> = true;

//! @brief Levels and marks of such a quantizer in words.
template <group_quantizer Quantizer>
struct codebook_words<Quantizer> {
  static constexpr int half  = Quantizer::magnitudes;
  static constexpr int count = 2 * half + 1;
  static constexpr int first = 0;

  std::uint32_t word[extent(count)];

  [[nodiscard]] static constexpr codebook_words make() noexcept
  {
    codebook_words out{};
    for (unsigned i = 0; i < half; ++i) {
      out.word[i]        = float_bits(Quantizer::level[i]);
      out.word[half + i] = Quantizer::mark[i];
    }
    out.word[2 * half] = Quantizer::mark[half];
    return out;
  }
};

//! @brief The first word of the scales of this thread's groups, counted from the first word of the chunk's codes.
template <class Quantizer>
[[nodiscard]] TERSUM_INLINE unsigned group_scale_word(int size, unsigned thread) noexcept
{
  return static_cast<unsigned>(size / 32 * Quantizer::bits) +
         thread / (Quantizer::block / 8) * (Quantizer::scale::bits / 8);
}

//! @brief The bits of the largest magnitude of each of a thread's four groups. All threads of the warp must call.
template <class Quantizer, class Context>
TERSUM_BODY void block_maxima(Context const& ctx, float const (&v)[32], std::uint32_t (&most)[4])
{
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    most[r] = Context::bits(thread_norm<8>::largest(ctx, v + 8 * r));
    TERSUM_UNROLL
    for (unsigned step = 1; step < Quantizer::block / 8; step *= 2) {
      most[r] = maximum(most[r], ctx.shuffle_xor(most[r], step));
    }
  }
}

//! @brief Levels of such a quantizer, as elements of `thread_scaled_floats`.
template <class Quantizer>
struct group_element {
  static constexpr int bits = Quantizer::bits;

  std::uint32_t const* marks;  //!< In shared memory.

  template <class Context>
  [[nodiscard]] TERSUM_BODY static float inverse(Context const&, float one)
  {
    return one >= least_block ? Context::divide(static_cast<float>(block_one), one) : 0.0f;
  }
  template <class Dither, class Context>
  [[nodiscard]] TERSUM_BODY std::uint32_t code(
    Context const&, float magnitude, philox_block const& draw, std::uint32_t mask, int byte) const
  {
#if !defined(__CUDA_ARCH__)
    // In a chunk that is not sound it may be any float, of which only devices make an integer.
    magnitude = ::fminf(magnitude, static_cast<float>(block_one));
#endif
    return Quantizer::round(minimum(static_cast<std::uint32_t>(magnitude), block_one),
                            threshold_of<Dither>(draw, mask, byte),
                            marks);
  }
};

//! @brief The scales of its groups, in units of the chunk's largest magnitude.
template <class Quantizer>
struct group_scale : Quantizer::scale {
  template <class, bool, class Context>
  [[nodiscard]] TERSUM_BODY static std::uint32_t of(Context const&, float most, float whole)
  {
    return Quantizer::scale::encode(Context::divide(most, whole));
  }
};

//! @brief Adds a thread's decoded codes to its values. `whole` is the chunk's scale times some factor.
template <class Quantizer, class Context>
TERSUM_BODY void add_blocks(Context const& ctx,
                            std::uint32_t const* tables,
                            std::uint32_t const* codes,
                            std::uint32_t const* scales,
                            float whole,
                            float (&v)[32])
{
  using scale             = typename Quantizer::scale;
  constexpr int in_a_word = 32 / scale::bits;
  std::uint32_t packed[scale::bits / 8];
  TERSUM_UNROLL
  for (int w = 0; w < scale::bits / 8; ++w) { packed[w] = ctx.load(scales + w); }
  std::uint32_t words[Quantizer::bits];
  thread_codes<Quantizer::bits>::load(ctx, codes, words);
  TERSUM_UNROLL
  for (int r = 0; r < 4; ++r) {
    constexpr std::uint32_t full = (1u << scale::bits) - 1;
    std::uint32_t const code     = packed[r / in_a_word] >> (r % in_a_word * scale::bits) & full;
    float const scaled           = Context::multiply(scale::decode(code), whole);
    TERSUM_UNROLL
    for (int i = 0; i < 8; ++i) { add_level<Quantizer>(ctx, tables, words, 8 * r + i, scaled, v); }
  }
}

//! @brief The chunk's scale is its largest magnitude: NaN if that is not finite, and zero, as are the codes, if it is next to
//! nothing.
template <group_quantizer Quantizer>
struct part_codes<Quantizer> {
  template <class Part>
  TERSUM_BODY static void add(Part const& own,
                              std::uint32_t const* codes,
                              float scale,
                              float (&v)[32])
  {
    add_blocks<Quantizer>(own.ctx,
                          own.tables,
                          codes + own.mine.thread * Quantizer::bits,
                          codes + group_scale_word<Quantizer>(Part::size, own.mine.thread),
                          scale,
                          v);
  }

  template <class Dither, class Part>
  TERSUM_BODY static void encode(Part const& own,
                                 float const (&v)[32],
                                 dither_key const& key,
                                 float share_of,
                                 std::uint32_t* part)
  {
    using context      = typename Part::context_type;
    constexpr int size = Part::size;
    std::uint32_t most[4];
    block_maxima<Quantizer>(own.ctx, v, most);
    float const whole = context::from_bits(
      chunk_maximum(own.ctx,
                    maximum(maximum(most[0], most[1]), maximum(most[2], most[3])),
                    own.mine,
                    own.storage));
    bool const sound = is_finite(whole) && whole >= 0x1p-100f;
    if (!own.mine.active || own.place.level == 0) { return; }
    if (own.mine.thread == 0) {
      float const said = is_finite(whole) ? 0.0f : context::from_bits(0x7fffffffu);
      own.ctx.store(part + own.map.scale_word(own.place.index),
                    context::bits(context::multiply(sound ? whole : said, share_of)));
    }
    using groups =
      thread_scaled_floats<32, group_element<Quantizer>, group_scale<Quantizer>, Dither>;
    std::uint32_t words[Quantizer::bits], scale_codes[4];
    groups::encode_groups(own.ctx,
                          group_element<Quantizer>{own.tables + codebook_words<Quantizer>::first +
                                                   Quantizer::magnitudes},
                          own.mine.chunk * (size / 32) + own.mine.thread,
                          key,
                          sound ? whole : 1.0f,
                          most,
                          v,
                          words,
                          scale_codes);
    TERSUM_UNROLL
    for (int w = 0; w < Quantizer::bits; ++w) { words[w] = sound ? words[w] : 0u; }
    std::uint32_t* const codes = part + own.place.word;
    thread_codes<Quantizer::bits>::store(own.ctx, words, codes + own.mine.thread * Quantizer::bits);
    if (own.mine.thread % (Quantizer::block / 8) == 0) {
      constexpr int scale_bits = Quantizer::scale::bits, in_a_word = 32 / scale_bits;
      TERSUM_UNROLL
      for (int w = 0; w < scale_bits / 8; ++w) {
        std::uint32_t scales = 0;
        TERSUM_UNROLL
        for (int r = 0; r < in_a_word; ++r) {
          scales |= scale_codes[w * in_a_word + r] << (r * scale_bits);
        }
        own.ctx.store(codes + group_scale_word<Quantizer>(size, own.mine.thread) + w,
                      sound ? scales : 0u);
      }
    }
  }
};

}  // namespace tersum::inline v0::detail
