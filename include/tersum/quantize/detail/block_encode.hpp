// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's 32 coordinates, rounded to the codes of a quantizer, 16 at a time and two in a word, and packed in the order of the wire:
//! how `block_codes` and the library's kernels encode.

#pragma once

#include <tersum/block/thread_codes.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/lookup_ramps.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/thread_hadamard.hpp>

namespace tersum::inline v0::detail {

//! @brief Whether addition with clamp is one instruction, as it is from sm_90 on.
template <class Context>
concept clamps_at_once = !requires
{
  requires !Context::clamps_at_once;
};

//! @brief Whether kernels round the values of a quantizer two in a word, to its grid.
template <class Quantizer>
concept on_grid = has_grid<Quantizer> &&
  (Quantizer::fraction_bits == 0 || Quantizer::fraction_bits == 8);

//! @brief Whether threads code with it in so few registers that blocks may have a bound.
template <class Quantizer>
inline constexpr bool in_few_registers = codebook<Quantizer> || on_grid<Quantizer>;

//! @brief How a rounded value lies in a field of 16 bits: it is code + `offset`, moved up by `shift` bits, above the fraction.
template <class Codec, class Context>
struct code_field {
  using quantizer            = typename Codec::quantizer_type;
  using lanes                = typename Codec::lanes;
  static constexpr bool grid = on_grid<quantizer>;
  static constexpr int shift = grid ? quantizer::fraction_bits : 0;
  //! Bits of the float 1.5 2^23 + 2^shift, which stands for the lowest code.
  static constexpr std::uint32_t lowest = 0x4b400000u + (1u << shift);
  //! What the code must be increased by in lanes of the wire, but for flipping signs.
  static constexpr std::uint32_t wanted = Codec::reducer_type::biased
                                            ? static_cast<std::uint32_t>(quantizer::max_level)
                                            : lanes::limit + 1u;
  //! What is added to a code. It must be at least max_level, so that no code is negative. More than that costs nothing: where the low half
  //! of the clamped float is the field, `lowest` adds one more, and where random bytes are added they bring all that is `wanted`.
  static constexpr int offset = grid && !clamps_at_once<Context> ? quantizer::max_level + 1
                                : shift == 8 && lanes::bits <= 8 ? static_cast<int>(wanted)
                                                                 : quantizer::max_level;
};

//! @brief The numbers by which grids of codes of several widths differ: constants, or in registers where the threads of a warp
//! have chunks of different widths.
struct code_grid {
  float lift;          //!< Added to a scaled value: where codes are integers of the float's bits.
  std::int32_t width;  //!< From the lowest code to the highest, in fractions of a step.
  float zero;          //!< The float that `rounded_value` makes of the code 0.

  template <class Codec, class Context>
  [[nodiscard]] TERSUM_BODY static constexpr code_grid of()
  {
    using field         = code_field<Codec, Context>;
    constexpr int limit = Codec::quantizer_type::max_level;
    constexpr int unit  = 1 << field::shift;
    return {12582912.0f + (limit + 1) * unit, 2 * limit * unit, 12582912.0f + field::offset};
  }
};

//! @brief Whether rounding to the grids of all widths of a codec differs in a `code_grid` only, so that threads with different
//! widths can round together.
template <class Codec, class Context, int Level = 1>
[[nodiscard]] TERSUM_INLINE constexpr bool rounds_alike() noexcept
{
  if constexpr (level_count<Codec> == 1 || Level > level_count<Codec>) {
    return level_count<Codec> > 1;
  } else {
    using own   = code_field<Codec, Context>;
    using level = decltype(Codec{}.template at_level<Level>());
    using field = code_field<level, Context>;
    return own::grid && field::grid && own::shift == field::shift &&
           own::offset - own::quantizer::max_level == field::offset - field::quantizer::max_level &&
           rounds_alike<Codec, Context, Level + 1>();
  }
}

//! @brief Whether kernels round to a table by `lookup_ramps`.
template <class Quantizer>
concept on_ramps = has_ramps<Quantizer> && Quantizer::ramps::serves;

//! @brief Rounds four values to a table by `lookup_ramps`: `fields` as those of `round_sixteen`. All lanes of the warp call.
//! @param level  That of this lane.
//! @param lacks  What the random bytes lack to 255.
template <class Quantizer, class Context>
TERSUM_BODY void round_on_ramps(Context const& ctx,
                                std::uint32_t level,
                                std::uint32_t lacks,
                                float scale,
                                float const* v,
                                std::uint32_t* fields)
{
  using ramps        = typename Quantizer::ramps;
  constexpr auto all = static_cast<std::uint32_t>(ramps::multiple);
  constexpr bool pair =
    clamps_at_once<Context>;  // before sm_90 two numbers of 16 bits are compared one by one
  std::uint32_t t[4];
  TERSUM_UNROLL
  for (int j = 0; j < 4; ++j) {
    t[j] = ramps::template place<Context>(v[j], scale);
    if constexpr (!pair) { t[j] = ramps::template sum<Context, false>(t[j]); }
  }
  TERSUM_UNROLL
  for (int k = 0; k < 2; ++k) {
    std::uint32_t both = Context::select_bytes(t[k], t[k + 2], 0x5410u);
    if constexpr (pair) { both = ramps::template sum<Context, true>(both); }
    both += all * Context::select_bytes(lacks, 0, k == 0 ? 0x4240u : 0x4341u);
    std::uint32_t const low  = ctx.shuffle(level, both >> ramps::shift);
    std::uint32_t const high = ctx.shuffle(level, both >> (16 + ramps::shift));
    fields[k] =
      ramps::mirror(Context::select_bytes(low, high, 0x5410u), Context::minus_pair(v[k], v[k + 2]));
  }
}

//! @brief Rounds the 16 values that share one draw, two in a word: `fields[2 q + k]` holds value 4 q + k and, in its upper
//! half, 4 q + k + 2, each as a `code_field`.
//! @param draw  Number of the draw: the first value's position on the wire, over the whole payload, by 16.
template <class Codec, class Context>
TERSUM_BODY void round_sixteen(Context const& ctx,
                               Codec const& codec,
                               dither_key const& key,
                               std::uint32_t mask,
                               std::uint64_t draw,
                               float scale,
                               float const* v,
                               std::uint32_t (&fields)[8],
                               code_grid const& grid = code_grid::of<Codec, Context>())
{
  using quantizer     = typename Codec::quantizer_type;
  using dither        = typename Codec::dither_type;
  using field         = code_field<Codec, Context>;
  constexpr int limit = quantizer::max_level;
  philox_block random{};
  if constexpr (dither::rounds > 0) {
    random =
      philox4x32<dither::rounds, typename Context::product>(dither::counter(draw, key), key.seed);
  }
  // Lanes look up in each other's registers only where the whole warp does so. If chunks are chosen, some lanes of a warp
  // may have nothing to encode.
  constexpr bool ramps = on_ramps<quantizer> && !selects<Codec>;
  std::uint32_t step   = 0;
  if constexpr (ramps) { step = quantizer::ramps::of_lane(ctx.thread_rank() % 32); }
  TERSUM_UNROLL
  for (int quad = 0; quad < 4; ++quad) {
    std::uint32_t const word = random.word[quad] ^ mask;
    if constexpr (ramps) {
      round_on_ramps<quantizer>(ctx, step, ~word, scale, v + 4 * quad, fields + 2 * quad);
    } else {
      std::uint32_t codes[4];
      [[maybe_unused]] float two[2];
      TERSUM_UNROLL
      for (int j = 0; j < 4; ++j) {
        float const value = v[4 * quad + j];
        if constexpr (field::grid) {
          // As round_to_grid, with two differences. The random byte is added after the clamp, since it cannot take a value
          // off the grid. And nothing guards against values beyond 2^23 units, since `step_of_chunk` keeps them below. The
          // constant that is added is even, so that ties still go to even numbers.
          constexpr int lowest = static_cast<int>(field::lowest);
          float shifted        = 0.0f;
          if constexpr (adds_two<Context>) {
            if (j % 2 == 0) {
              two[0] = v[4 * quad + j];
              two[1] = v[4 * quad + j + 1];
              Context::two_fma(two[0], two[1], scale, grid.lift);
            }
            shifted = two[j % 2];
          } else {
            shifted = Context::fma(value, scale, grid.lift);
          }
          std::int32_t const bits = static_cast<std::int32_t>(Context::bits(shifted));
          if constexpr (clamps_at_once<Context>) {
            codes[j] = static_cast<std::uint32_t>(Context::add_clamp(bits, -lowest, grid.width));
          } else {
            // The low half is the field, and `select_bytes` takes nothing else.
            codes[j] =
              static_cast<std::uint32_t>(maximum(minimum(bits, lowest + grid.width), lowest));
          }
        } else {
          std::uint32_t const byte = (word >> (8 * j)) & 0xffu;
          std::int32_t const code  = codec.coder.quantizer.encode(value, scale, byte);
          codes[j]                 = static_cast<std::uint32_t>(code + field::offset);
        }
      }
      TERSUM_UNROLL
      for (int k = 0; k < 2; ++k) {
        std::uint32_t& both = fields[2 * quad + k];
        both                = Context::select_bytes(codes[k], codes[k + 2], 0x5410u);
        if constexpr (field::shift == 8) {
          // The random bytes, and above them what is missing to `offset` after the clamp.
          constexpr std::uint32_t above = clamps_at_once<Context> ? field::offset - limit : 0;
          both += Context::select_bytes(word, above, k == 0 ? 0x4240u : 0x4341u);
        }
      }
    }
  }
}

//! @brief The code of one of 16 rounded values.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY float rounded_value(
  std::uint32_t const (&fields)[8], int i, code_grid const& grid = code_grid::of<Codec, Context>())
{
  using field = code_field<Codec, Context>;
  // 1.5 2^23 + code + offset is a float whose low bytes are the integer.
  unsigned const low    = i % 4 < 2 ? 0 : 2;
  unsigned const chosen = field::shift == 8 ? 0x7641u + low : 0x7610u + 0x11u * low;
  float const lifted =
    Context::from_bits(Context::select_bytes(fields[i / 4 * 2 + i % 2], field::lowest, chosen));
  return Context::subtract(lifted, grid.zero);
}

//! @brief The wire words of 16 rounded values.
template <class Codec, class Context>
TERSUM_BODY void pack_fields(Context const& ctx,
                             std::uint32_t const (&fields)[8],
                             std::uint32_t* words)
{
  using lanes = typename Codec::lanes;
  using field = code_field<Codec, Context>;
  TERSUM_UNROLL
  for (int w = 0; w < lanes::bits / 2; ++w) {
    words[w] = thread_codes<lanes::bits>::template pack_word<field::shift == 8>(ctx, fields, w) +
               lanes::ones * (field::wanted - static_cast<std::uint32_t>(field::offset));
    if constexpr (!Codec::reducer_type::biased) { words[w] ^= lanes::signs; }
  }
}

//! @brief All ones if the step is above zero. A mask, because nvcc would make a selection for each word of a condition.
template <class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t kept_mask(float step)
{
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(0u - Context::bits(step)) >> 31);
}

//! @brief `encode_words` of a codec that `rounds_alike`, on threads each of which has a level of its own: all of them round
//! together. Then it calls body(words) with the words of this thread's level, not on level 0.
template <class Codec, class Context, class Body>
TERSUM_BODY void encode_on_level(Context const& ctx,
                                 Codec const& codec,
                                 std::uint32_t level,
                                 dither_key const& key,
                                 std::uint32_t mask,
                                 std::uint64_t number,
                                 float scale,
                                 float (&v)[32],
                                 Body const& body)
{
  code_grid grid{};
  at_level(codec, level, [&](auto const& chosen) {
    grid = code_grid::of<std::remove_cvref_t<decltype(chosen)>, Context>();
  });
  std::uint32_t fields[2][8];
  TERSUM_UNROLL
  for (int half_of = 0; half_of < 2; ++half_of) {
    std::uint64_t const draw = number * 2 | static_cast<unsigned>(half_of);
    round_sixteen(ctx, codec, key, mask, draw, scale, v + 16 * half_of, fields[half_of], grid);
    TERSUM_UNROLL
    for (int i = 0; i < 16; ++i) {
      v[16 * half_of + i] = rounded_value<Codec, Context>(fields[half_of], i, grid);
    }
  }
  if (level == 0) { return; }
  std::uint32_t const kept = kept_mask<Context>(scale);
  at_level(codec, level, [&](auto const& chosen) {
    using level_codec  = std::remove_cvref_t<decltype(chosen)>;
    constexpr int bits = level_codec::lanes::bits;
    std::uint32_t words[extent(bits)];
    pack_fields<level_codec>(ctx, fields[0], words);
    pack_fields<level_codec>(ctx, fields[1], words + bits / 2);
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) {
      words[w] = (words[w] & kept) | (level_codec::zero_word & ~kept);
    }
    body(words);
  });
}

//! @brief Rounds and packs; v becomes the codes.
//! @param number  Of these coordinates, by 32, over the whole payload if all chunks travelled: numbers two draws.
//! @param scale   `chunk_step::encode`: where it is 0, codes are 0, also of values that are not finite.
template <class Codec, class Context, std::size_t Bits>
TERSUM_BODY void encode_words(Context const& ctx,
                              Codec const& codec,
                              dither_key const& key,
                              std::uint32_t mask,
                              std::uint64_t number,
                              float scale,
                              float (&v)[32],
                              std::uint32_t (&words)[Bits])
{
  constexpr int bits       = static_cast<int>(Bits);
  std::uint32_t const kept = kept_mask<Context>(scale);
  TERSUM_UNROLL
  for (int half_of = 0; half_of < 2; ++half_of) {
    std::uint32_t fields[8];
    round_sixteen(ctx,
                  codec,
                  key,
                  mask,
                  number * 2 | static_cast<unsigned>(half_of),
                  scale,
                  v + 16 * half_of,
                  fields);
    pack_fields<Codec>(ctx, fields, words + half_of * (bits / 2));
    TERSUM_UNROLL
    for (int i = 0; i < 16; ++i) { v[16 * half_of + i] = rounded_value<Codec, Context>(fields, i); }
  }
  TERSUM_UNROLL
  for (int w = 0; w < bits; ++w) { words[w] = (words[w] & kept) | (Codec::zero_word & ~kept); }
}

}  // namespace tersum::inline v0::detail
