// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Between the 32 coordinates of a thread, in the order of the wire, and the words of their codes: rounding, packing, and the way
//! back, with what is counted on it. It is what `block_codes` and the library's own kernels are made of.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/detail/lookup_ramps.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/quantize/uniform_grid.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/rotate/detail/fragment_hadamard.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Whether addition with clamp is one instruction, as it is from sm_90 on.
template <class Context>
inline constexpr bool clamps_at_once = true;

template <class Context>
requires requires { Context::clamps_at_once; }
inline constexpr bool clamps_at_once<Context> = Context::clamps_at_once;

//! @brief Whether a quantizer's `encode` is `round_to_grid`, which this file does for two values in a word.
template <class Quantizer>
inline constexpr bool on_grid = false;

template <class Quantizer>
requires(has_rounds_to_grid<Quantizer>) inline constexpr bool on_grid<Quantizer> =
  Quantizer::fraction_bits == 0 || Quantizer::fraction_bits == 8;

//! @brief How a rounded value lies in a field of 16 bits: it is code + `offset`, moved up by `shift` bits, with the
//! fraction below it.
template <class Codec, class Context>
struct code_field {
  using quantizer            = typename Codec::quantizer_type;
  using lanes                = typename Codec::lanes;
  static constexpr bool grid = on_grid<quantizer>;
  static constexpr int shift = grid ? quantizer::fraction_bits : 0;
  //! Bits of the float 1.5 2^23 + 2^shift, which stands for the lowest code.
  static constexpr std::uint32_t lowest = 0x4b400000u + (1u << shift);
  //! What the code must be increased by in lanes of the wire, but for flipping signs.
  static constexpr int wanted =
    Codec::reducer_type::biased ? quantizer::max_level : lanes::limit + 1;
  //! What is added to a code. It must be at least max_level, so that no code is negative. More than that costs nothing:
  //! where the low half of the clamped float is the field, `lowest` adds one more, and where random bytes are added they
  //! bring all that is `wanted`.
  static constexpr int offset = grid && !clamps_at_once<Context> ? quantizer::max_level + 1
                                : shift == 8 && lanes::bits <= 8 ? wanted
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
  if constexpr (!several_bits<Codec>) {
    return false;
  } else if constexpr (Level > Codec::chunker_type::level_count) {
    return true;
  } else {
    using own   = code_field<Codec, Context>;
    using level = decltype(Codec{}.template at_level<Level>());
    using field = code_field<level, Context>;
    return own::grid && field::grid && own::shift == field::shift &&
           own::offset - own::quantizer::max_level == field::offset - field::quantizer::max_level &&
           rounds_alike<Codec, Context, Level + 1>();
  }
}

//! @brief Whether a quantizer rounds to a table so short that a warp can hold it, each lane one entry.
template <class Quantizer>
inline constexpr bool table_in_lanes = false;

template <class Quantizer>
requires(has_table<Quantizer>) inline constexpr bool table_in_lanes<Quantizer> =
  Quantizer::table::granularity - Quantizer::table::lowest < 32;

//! @brief Whether kernels round to it by `lookup_ramps`.
template <class Quantizer>
inline constexpr bool table_on_ramps = false;

template <class Quantizer>
requires(table_in_lanes<Quantizer>) inline constexpr bool table_on_ramps<Quantizer> =
  lookup_ramps<typename Quantizer::table>::serves;

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
  using ramps        = lookup_ramps<typename Quantizer::table>;
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
  constexpr bool shuffles = table_in_lanes<quantizer> && !selects<Codec>;
  constexpr bool ramps    = shuffles && table_on_ramps<quantizer>;
  std::uint32_t step      = 0;
  if constexpr (ramps) {
    step = lookup_ramps<typename quantizer::table>::of_lane(ctx.thread_rank() % 32);
  } else if constexpr (shuffles) {
    constexpr unsigned lowest = quantizer::table::lowest;
    unsigned const mine       = lowest + (ctx.thread_rank() - lowest) % 32;
    step                      = static_cast<std::uint32_t>(
      quantizer::table::enclose_packed(static_cast<std::int32_t>(256 * mine)));
  }
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
          if constexpr (adds_two<Context> && !wants_tiles<Codec>) {
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
          std::int32_t code        = 0;
          if constexpr (shuffles) {
            std::int32_t const x = quantizer::place(value, scale);
            auto const between   = quantizer::table::unpack(
              static_cast<std::int32_t>(ctx.shuffle(step, static_cast<std::uint32_t>(x >> 8))));
            code = quantizer::choose(x, between, value, byte);
          } else {
            code = codec.quantizer.encode(value, scale, byte);
          }
          codes[j] = static_cast<std::uint32_t>(code + field::offset);
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
TERSUM_BODY void pack_fields(Context const&, std::uint32_t const (&fields)[8], std::uint32_t* words)
{
  using lanes         = typename Codec::lanes;
  using field         = code_field<Codec, Context>;
  constexpr bool high = field::shift == 8;  // codes lie in byte 1 or 0
  // The codes of two words, one word after the other or in turn.
  constexpr std::uint32_t serial = high ? 0x7531u : 0x6420u;
  constexpr std::uint32_t turn   = high ? 0x7351u : 0x6240u;
  constexpr int count            = lanes::bits / 2;
  TERSUM_UNROLL
  for (int w = 0; w < count; ++w) {
    std::uint32_t& word = words[w];
    if constexpr (lanes::bits == 16) {
      std::uint32_t const even = fields[w / 2 * 2], odd = fields[w / 2 * 2 + 1];
      if constexpr (high) {
        std::uint32_t const four = Context::select_bytes(even, odd, turn);
        word                     = Context::select_bytes(four, 0, w % 2 == 0 ? 0x4140u : 0x4342u);
      } else {
        word = Context::select_bytes(even, odd, w % 2 == 0 ? 0x5410u : 0x7632u);
      }
    } else if constexpr (lanes::bits == 8) {
      word = Context::select_bytes(fields[2 * w], fields[2 * w + 1], turn);
    } else if constexpr (lanes::bits == 4) {
      std::uint32_t const* const four = fields + 4 * w;
      word                            = Context::select_bytes(four[0], four[2], serial) +
             (Context::select_bytes(four[1], four[3], serial) << 4);
    } else {
      // Codes of half a word in the wrong order of nibbles, then bytes and nibbles in order.
      std::uint32_t eight[2];
      TERSUM_UNROLL
      for (int k = 0; k < 2; ++k) {
        std::uint32_t const* const four = fields + 4 * k;
        eight[k]                        = Context::select_bytes(four[0], four[2], turn) +
                   (Context::select_bytes(four[1], four[3], turn) << 2);
      }
      word = Context::select_bytes(eight[0], eight[1], 0x5410u) +
             (Context::select_bytes(eight[0], eight[1], 0x7632u) << 4);
    }
    word += lanes::ones * static_cast<std::uint32_t>(field::wanted - field::offset);
    if constexpr (!Codec::reducer_type::biased) { word ^= lanes::signs; }
  }
}

//! @brief Adds the squares of the codes of a word to a sum, and the number of its lanes at a limit to a count.
template <class Codec, class Context>
TERSUM_BODY void inspect_word(Context const&,
                              std::uint32_t word,
                              std::uint32_t& squares,
                              std::uint32_t& at_limit)
{
  using lanes               = typename Codec::lanes;
  std::uint32_t const minus = (word >> (lanes::bits - 1)) & lanes::ones;
  std::uint32_t const mask  = (minus << lanes::bits) - minus;  // bits is below 32
  std::uint32_t const size  = (word ^ mask) + minus;           // magnitudes, lane by lane
  at_limit += Context::population((size + lanes::ones) & lanes::signs);
  if constexpr (tracks<Codec>) {
    constexpr int interleaved = 8 / lanes::bits;
    TERSUM_UNROLL
    for (int s = 0; s < interleaved; ++s) {
      std::uint32_t const bytes =
        interleaved == 1 ? size : (size >> (lanes::bits * s)) & (0x01010101u * lanes::full);
      squares = Context::dot_bytes(bytes, bytes, squares);
    }
  }
}

//! @brief How the lanes of a thread become floats.
//!
//! Lanes are made non-negative first, so that every register ends with the same offset. Where all butterflies of the wire
//! arrangement follow, and lanes are narrow, three levels of them are done on packed bytes: between the lanes that share a
//! byte, and between words. Sums and differences then both have twice the offset. All values are integers below 2^24, so
//! that every order of the butterflies gives the same bits.
//! @tparam Mixed  Chunks of other widths share the warp. Then nothing is done on bytes, so that all threads go on alike.
template <class Codec, bool Mixed = false>
struct lane_values {
  using lanes    = typename Codec::lanes;
  using hadamard = block_hadamard<Codec::chunk_size, Codec::rotates_chunks>;

  static constexpr int interleaved =
    lanes::bits <= 8 ? 8 / lanes::bits : 1;  //!< Lanes that share a byte.
  static constexpr bool packed = !Mixed && Codec::rotates_chunks && !Codec::reducer_type::biased &&
                                 lanes::bits <= 4 && hadamard::wire_levels == 5;
  //! How many levels of butterflies are done on bytes: of the lowest and of the highest bits of the register index.
  static constexpr int low_levels  = packed ? log2_exact(interleaved) : 0;
  static constexpr int high_levels = packed ? log2_exact(lanes::bits) : 0;
  static constexpr int levels      = low_levels + high_levels;
  //! What the conversion to float adds: 2^23 or, for lanes of at most 4 bits, 2^7.
  static constexpr float exponent = lanes::bits == 16  ? 0.0f
                                    : lanes::bits == 8 ? 8388608.0f
                                                       : 128.0f;

  //! The value in a register that stands for zero.
  [[nodiscard]] TERSUM_BODY static float zero(int world)
  {
    int const lane =
      Codec::reducer_type::biased ? world * Codec::quantizer_type::max_level : lanes::limit + 1;
    return exponent + static_cast<float>(lane << levels);
  }

  //! Makes eight words of bytes, none negative, of the words of a thread; they are numbered by the lane within the byte,
  //! then by the word.
  template <class Context>
  TERSUM_BODY static void spread(Context const&,
                                 std::uint32_t const (&words)[lanes::bits],
                                 std::uint32_t (&bytes)[8])
  {
    TERSUM_UNROLL
    for (int w = 0; w < lanes::bits; ++w) {
      std::uint32_t const word = Codec::reducer_type::biased ? words[w] : words[w] ^ lanes::signs;
      TERSUM_UNROLL
      for (int s = 0; s < interleaved; ++s) {
        bytes[w * interleaved + s] =
          interleaved == 1 ? word : (word >> (lanes::bits * s)) & (0x01010101u * lanes::full);
      }
    }
  }

  //! Butterflies over the bits First .. Last-1 of the number of a word of bytes. Each level doubles the offset.
  template <int First, int Last, class Context>
  TERSUM_BODY static void transform_bytes(Context const&, std::uint32_t (&bytes)[8])
  {
    TERSUM_UNROLL
    for (int level = First; level < Last; ++level) {
      std::uint32_t const offset =
        0x01010101u * (static_cast<std::uint32_t>(lanes::limit + 1) << (level - First + 1));
      TERSUM_UNROLL
      for (int i = 0; i < 8; ++i) {
        if ((i >> level & 1) == 0) {
          std::uint32_t const a = bytes[i];
          std::uint32_t const b = bytes[i | 1 << level];
          bytes[i]              = a + b;
          bytes[i | 1 << level] = a - b + offset;
        }
      }
    }
  }

  //! Turns the words of a thread into floats in wire order, after the butterflies on bytes.
  template <class Context>
  TERSUM_BODY static void unpack(Context const& ctx,
                                 std::uint32_t const (&words)[lanes::bits],
                                 float (&v)[32])
  {
    if constexpr (lanes::bits == 16) {
      TERSUM_UNROLL
      for (int w = 0; w < 16; ++w) {
        std::uint32_t const word = Codec::reducer_type::biased ? words[w] : words[w] ^ lanes::signs;
        v[2 * w]                 = static_cast<float>(word & 0xffffu);
        v[2 * w + 1]             = static_cast<float>(word >> 16);
      }
    } else {
      std::uint32_t bytes[8];
      spread(ctx, words, bytes);
      transform_bytes<0, levels>(ctx, bytes);
      TERSUM_UNROLL
      for (int i = 0; i < 8; ++i) {
        TERSUM_UNROLL
        for (unsigned j = 0; j < 4; ++j) {
          int const k =
            i / interleaved * lanes::lanes + static_cast<int>(j) * interleaved + i % interleaved;
          v[k] =
            lanes::bits == 8
              ? Context::from_bits(Context::select_bytes(bytes[i], 0x4b000000u, 0x7650u | j))
              : Context::from_bits(Context::select_bytes(bytes[i], 0x43000000u, 0x7044u | j << 8));
        }
      }
    }
  }
};

//! @brief All ones if the step is above zero. A mask, because nvcc would make a selection for each word of a condition.
template <class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t kept_mask(float step)
{
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(0u - Context::bits(step)) >> 31);
}

//! @brief `encode_words` of a codec that `rounds_alike`, on threads each of which has a level of its own: all of them round
//! together. Then it calls body(words) with the words of this thread's level, not on level 0.
template <class Codec, class Context, class Values, class Body>
TERSUM_BODY void encode_on_level(Context const& ctx,
                                 Codec const& codec,
                                 std::uint32_t level,
                                 dither_key const& key,
                                 std::uint32_t mask,
                                 std::uint64_t number,
                                 float scale,
                                 float step,
                                 Values& v,
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
    if constexpr (feeds_back<Codec>) {
      TERSUM_UNROLL
      for (int i = 0; i < 16; ++i) {
        v[16 * half_of + i] = rounded_value<Codec, Context>(fields[half_of], i, grid);
      }
    }
  }
  if (level == 0) { return; }
  std::uint32_t const kept = kept_mask<Context>(step);
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

//! @brief Rounds and packs; with feedback v becomes the codes.
//! @param number  Of these coordinates, by 32, over the whole payload if all chunks travelled: numbers the draws, two of
//!                them.
//! @param scale   Of the values.
//! @param step    `chunk_step::encode`: where it is 0, codes are 0, also of values that are not finite.
template <class Codec, class Context, class Values, std::size_t Bits>
TERSUM_BODY void encode_words(Context const& ctx,
                              Codec const& codec,
                              dither_key const& key,
                              std::uint32_t mask,
                              std::uint64_t number,
                              float scale,
                              float step,
                              Values& v,
                              std::uint32_t (&words)[Bits])
{
  constexpr int bits       = static_cast<int>(Bits);
  std::uint32_t const kept = kept_mask<Context>(step);
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
    if constexpr (feeds_back<Codec>) {
      TERSUM_UNROLL
      for (int i = 0; i < 16; ++i) {
        v[16 * half_of + i] = rounded_value<Codec, Context>(fields, i);
      }
    }
  }
  TERSUM_UNROLL
  for (int w = 0; w < bits; ++w) { words[w] = (words[w] & kept) | (Codec::zero_word & ~kept); }
}

//! Words that a thread stores at once, of the `Bits` words that its 32 codes take.
template <int Bits>
inline constexpr unsigned words_per_store = Bits == 2 ? 2 : 4;

//! @brief Writes a thread's words to a payload, from number `at` on, counted in `words_per_store`.
template <class Context, std::size_t Bits>
TERSUM_BODY void store_words(Context const& ctx,
                             std::uint32_t const (&words)[Bits],
                             std::uint32_t* payload,
                             std::uint64_t at)
{
  constexpr int bits = static_cast<int>(Bits);
  if constexpr (bits == 2) {
    ctx.store(reinterpret_cast<std::uint64_t*>(payload) + at,
              words[0] | static_cast<std::uint64_t>(words[1]) << 32);
  } else {
    TERSUM_UNROLL
    for (int w = 0; w < bits; w += 4) {
      ctx.store(reinterpret_cast<word4*>(payload) + at + w / 4,
                word4{words[w], words[w + 1], words[w + 2], words[w + 3]});
    }
  }
}

//! @brief Loads the words of a thread's 32 codes.
template <std::size_t Bits, class Context>
TERSUM_BODY void load_code_words(Context const& ctx,
                                 std::uint32_t const* from,
                                 std::uint32_t (&words)[Bits])
{
  constexpr int bits = static_cast<int>(Bits);
  if constexpr (bits == 2) {
    std::uint64_t const both = ctx.load(reinterpret_cast<std::uint64_t const*>(from));
    words[0]                 = static_cast<std::uint32_t>(both);
    words[1]                 = static_cast<std::uint32_t>(both >> 32);
  } else {
    TERSUM_UNROLL
    for (int w = 0; w < bits; w += 4) {
      word4 const four = ctx.load(reinterpret_cast<word4 const*>(from + w));
      words[w]         = four.x;
      words[w + 1]     = four.y;
      words[w + 2]     = four.z;
      words[w + 3]     = four.w;
    }
  }
}

//! @brief Loads a thread's words, and adds up the squares of their codes and the lanes at a limit. Without `exists` it
//! reads nothing, and the words are zeros.
template <class Codec, std::size_t Bits, class Context>
TERSUM_BODY void load_words(Context const& ctx,
                            std::uint32_t const* from,
                            bool exists,
                            std::uint32_t (&words)[Bits],
                            std::uint32_t& squares,
                            std::uint32_t& at_limit)
{
  constexpr int bits = static_cast<int>(Bits);
  TERSUM_UNROLL
  for (int w = 0; w < bits; ++w) { words[w] = 0; }
  if (exists) { load_code_words(ctx, from, words); }
  if constexpr (saturates<Codec>) {
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { inspect_word<Codec>(ctx, words[w], squares, at_limit); }
  }
}

//! @brief Codes, or sums of the codes of `world` ranks, as floats of the same integers.
template <class Codec, class Context, std::size_t Bits>
TERSUM_BODY void decode_words(Context const& ctx,
                              std::uint32_t const (&words)[Bits],
                              int world,
                              float (&v)[32])
{
  using values = lane_values<Codec, true>;
  values::unpack(ctx, words, v);
  float const zero = values::zero(world);
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { v[k] = Context::subtract(v[k], zero); }
}

//! @brief The codes of a thread, or sums of codes, whose width is that of the thread's chunk: a byte each in the order of the wire,
//! so that threads with chunks of different widths go on alike.
struct byte_codes {
  static constexpr std::uint32_t ones  = 0x01010101u;
  static constexpr std::uint32_t signs = 0x80808080u;

  //! 128 more than the codes. Zeros at first.
  std::uint32_t bytes[8] = {signs, signs, signs, signs, signs, signs, signs, signs};
  std::uint32_t limit    = 127;  //!< Of the lanes.

  //! Takes words of two's-complement lanes.
  template <class Lanes, class Context>
  TERSUM_BODY void take(Context const&, std::uint32_t const (&words)[Lanes::bits])
  {
    constexpr int in_byte = 8 / Lanes::bits;
    // Codes that are not negative become 128 more by what is added to them, in whatever lane.
    constexpr std::uint32_t more = ones * (127u - Lanes::limit);
    limit                        = Lanes::limit;
    TERSUM_UNROLL
    for (int w = 0; w < Lanes::bits; ++w) {
      std::uint32_t
        part[static_cast<std::size_t>(in_byte)];  // the lanes that share a byte with others
      TERSUM_UNROLL
      for (int s = 0; s < in_byte; ++s) {
        part[s] = ((words[w] ^ Lanes::signs) >> (Lanes::bits * s) & ones * Lanes::full) + more;
      }
      std::uint32_t* const to = bytes + w * in_byte;
      if constexpr (in_byte == 1) {
        to[0] = part[0];
      } else if constexpr (in_byte == 2) {
        to[0] = Context::select_bytes(part[0], part[1], 0x5140u);
        to[1] = Context::select_bytes(part[0], part[1], 0x7362u);
      } else {
        TERSUM_UNROLL
        for (int k = 0; k < 2; ++k) {
          unsigned const pair      = k == 0 ? 0x5140u : 0x7362u;
          std::uint32_t const even = Context::select_bytes(part[0], part[1], pair);
          std::uint32_t const odd  = Context::select_bytes(part[2], part[3], pair);
          to[2 * k]                = Context::select_bytes(even, odd, 0x5410u);
          to[2 * k + 1]            = Context::select_bytes(even, odd, 0x7632u);
        }
      }
    }
  }

  //! As `inspect_word`, of all codes.
  template <class Codec, class Context>
  TERSUM_BODY void inspect(Context const&, std::uint32_t& squares, std::uint32_t& at_limit) const
  {
    std::uint32_t const to_sign = ones * (128u - limit);
    std::uint32_t reached       = 0;  // a bit for each code
    TERSUM_UNROLL
    for (int i = 0; i < 8; ++i) {
      std::uint32_t const minus = ~(bytes[i] >> 7) & ones;
      std::uint32_t const mask  = (minus << 8) - minus;
      std::uint32_t const size  = (bytes[i] ^ signs ^ mask) + minus;
      reached                   = reached >> 1 | ((size + to_sign) & signs);
      if constexpr (tracks<Codec>) { squares = Context::dot_bytes(size, size, squares); }
    }
    at_limit += Context::population(reached);
  }

  //! The codes as floats, in the order of the wire, each with `zero` added to it.
  template <class Context>
  TERSUM_BODY void to_floats(Context const&, float (&v)[32]) const
  {
    TERSUM_UNROLL
    for (unsigned k = 0; k < 32; ++k) {
      v[k] = Context::from_bits(
        Context::select_bytes(bytes[k / 4], 0x47000000u, 0x7604u | (k % 4) << 4));
    }
  }
  static constexpr float zero = 32768.0f + 128.0f;
};

}  // namespace tersum::inline v0::detail
