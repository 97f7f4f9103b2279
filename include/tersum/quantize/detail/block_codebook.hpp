// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codebook codes of a thread's 32 positions, with the tables in shared memory or in the lanes of a warp: kernel body parts.

#pragma once

#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/block/thread_codes.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/detail/codebook_cells.hpp>

namespace tersum::inline v0::detail {

//! @brief A codebook in words: its levels, and those of all places; or its boundaries, and the cells of the points of its grid, four
//! in a word.
template <class Quantizer>
struct codebook_words {
  static constexpr int half  = Quantizer::magnitudes;
  static constexpr int count = has_places<Quantizer> ? half + 32 : 3 * half;
  //! Where it lies among those of all widths, of which those of 2, 3 and 4 bits may have places.
  static constexpr int first = 3 * (half - 1) + 32 * minimum(3, maximum(0, Quantizer::bits - 2));

  std::uint32_t word[extent(count)];

  [[nodiscard]] static constexpr codebook_words make() noexcept
  {
    codebook_words out{};
    for (int i = 0; i < half; ++i) { out.word[i] = float_bits(Quantizer::levels()[i]); }
    if constexpr (has_places<Quantizer>) {
      for (int i = 0; i < 32; ++i) {
        out.word[half + i] = float_bits(placed_levels_of<Quantizer>.level[i]);
      }
    } else if constexpr (half > 1) {
      for (int i = 0; i < half; ++i) {
        out.word[half + i] = float_bits(Quantizer::boundaries()[i]);
      }
      static_assert(cell_grid<Quantizer>::serves,
                    "tersum: the cells of a codebook must be wider than a point of its grid");
      for (unsigned i = 0; i < cell_grid<Quantizer>::cells.size(); ++i) {
        auto const cell = float_bits(cell_grid<Quantizer>::cells[i]);
        out.word[2 * half + static_cast<int>(i / 4)] |= cell << (8 * (i % 4));
      }
    }
    return out;
  }
};

//! @brief The levels of all codes, which are repeated.
template <table_codebook Quantizer>
struct lane_levels {
  float level[32];

  [[nodiscard]] static constexpr lane_levels make() noexcept
  {
    lane_levels out{};
    for (int i = 0; i < 32; ++i) {
      float const level = Quantizer::levels()[i % Quantizer::magnitudes];
      out.level[i]      = i / Quantizer::magnitudes % 2 == 0 ? level : -level;
    }
    return out;
  }
};

template <class Quantizer>
inline constexpr lane_levels<Quantizer> lane_levels_of = lane_levels<Quantizer>::make();

//! @brief A codebook of which each lane of a warp holds one entry of each of two tables. A shuffle looks it up, in fewer
//! instructions than shared memory takes. All lanes of the warp must look up together.
template <table_codebook Quantizer>
struct codebook_lanes {
  static constexpr int half = Quantizer::magnitudes;
  static constexpr int bits = Quantizer::bits;
  using codes               = thread_codes<bits>;

  //! Whether codes are decoded in this way.
  static constexpr bool decodes = half > 1 && half <= 8;

  //! Whether values are encoded in this way.
  static constexpr bool encodes = decodes && has_places<Quantizer>;

  //! @brief The level of the code that is this lane's number modulo the number of codes.
  template <class Context>
  [[nodiscard]] TERSUM_BODY static float of_code(Context const& ctx)
  {
    static constexpr lane_levels<Quantizer> source = lane_levels_of<Quantizer>;
    return source.level[ctx.thread_rank() % 32];
  }

  //! @brief Adds scale times the levels of a thread's codes to its values.
  template <class Context>
  TERSUM_BODY static void add_codes(Context const& ctx,
                                    std::uint32_t const (&words)[extent(bits)],
                                    float scale,
                                    float (&v)[32])
  {
    float const level = of_code(ctx);
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) {
      v[k] = Context::fma(ctx.shuffle(level, codes::get(words, k)), scale, v[k]);
    }
  }

  //! @brief Rounds a thread's values times `scale`, one over the root mean square, to codes. Returns the sum of |v| * level.
  template <class Context>
  TERSUM_BODY static float code_values(Context const& ctx,
                                       float scale,
                                       float const (&v)[32],
                                       std::uint32_t (&words)[static_cast<std::size_t>(bits)])
  {
    static constexpr placed_levels<Quantizer> source = placed_levels_of<Quantizer>;
    std::uint32_t const mine = Context::bits(source.level[ctx.thread_rank() % 32]);
    float const slope        = Context::multiply(scale, Quantizer::slope);
    float product            = 0.0f;
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) {
      float const size  = ::fabsf(v[k]);
      float const place = Context::fma_within_one(size, slope, Quantizer::offset);
      std::uint32_t const chosen =
        ctx.shuffle(mine, Context::bits(place) >> cell_places<Quantizer>::shift);
      product = Context::fma(size, Context::from_bits(chosen), product);
      codes::put(words, k, chosen);
    }
    // Behind all codes, which takes fewer registers here.
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { codes::put_signs(ctx, words, w, v); }
    return product;
  }
};

//! @brief Whether kernels look up what a quantizer does, in `codebook_words`.
template <class Quantizer>
inline constexpr bool has_tables_of = table_codebook<Quantizer>;

//! @brief Whether all lanes of a warp encode and decode codes of the same width, so that they can look up together. Warps
//! without work have returned before: see `all_idle`.
template <class Codec>
inline constexpr bool looks_up_in_step =
  Codec::rotation::threads >= 32 && !several_bits<Codec> && !selects<Codec>;

//! @brief Whether the levels of a codebook lie in the lanes of a warp.
template <class Quantizer>
inline constexpr bool in_lanes = requires
{
  requires codebook_lanes<Quantizer>::encodes;
};

//! @brief Whether kernels of a codec look up what a quantizer does in shared memory.
template <class Codec, class Quantizer>
inline constexpr bool needs_tables =
  has_tables_of<Quantizer> && !(looks_up_in_step<Codec> && in_lanes<Quantizer>);

//! @brief The words of a codebook, computed by the host's compiler; device code has a copy.
template <class Quantizer>
inline constexpr codebook_words<Quantizer> codebook_of = codebook_words<Quantizer>::make();

//! @brief The codebook of a level.
template <class Codec, int Level>
using level_quantizer =
  typename std::remove_cvref_t<decltype(Codec{}.template at_level<Level>())>::quantizer_type;

//! @brief Where the tables of a quantizer end; 0 if it needs none.
template <class Codec, class Quantizer>
[[nodiscard]] constexpr int end_of_tables() noexcept
{
  if constexpr (needs_tables<Codec, Quantizer>) {
    return codebook_words<Quantizer>::first + codebook_words<Quantizer>::count;
  }
  return 0;
}

//! @brief Words of shared memory for a codec's codebooks: what the widest one of those of all levels and of the mean needs.
template <class Codec, int Level = 1>
[[nodiscard]] constexpr int codebook_room() noexcept
{
  int const own = end_of_tables<Codec, level_quantizer<Codec, Level>>();
  if constexpr (Level < level_count<Codec>) {
    return maximum(own, codebook_room<Codec, Level + 1>());
  }
  return maximum(own, end_of_tables<Codec, typename Codec::mean_quantizer_type>());
}

//! @brief Whether any level looks up.
template <class Codec>
inline constexpr bool has_codebooks = codebook_room<Codec>() > 0;

//! @brief Copies the tables of a quantizer to shared memory, if it has any.
template <class Codec, class Quantizer, class Context>
TERSUM_BODY void fill_codebook(Context const& ctx, std::uint32_t* tables)
{
  if constexpr (needs_tables<Codec, Quantizer>) {
    using words                   = codebook_words<Quantizer>;
    static constexpr words source = codebook_of<Quantizer>;
    for (unsigned i = ctx.thread_rank(); i < words::count; i += ctx.block_threads()) {
      tables[static_cast<unsigned>(words::first) + i] = source.word[i];
    }
  }
}

//! @brief Whether chunks of some level are sent in codes of so many bits.
template <class Codec, int Bits, int Level = level_count<Codec>>
inline constexpr bool sends_in =
  level_quantizer<Codec, Level>::bits == Bits || sends_in<Codec, Bits, Level - 1>;
template <class Codec, int Bits>
inline constexpr bool sends_in<Codec, Bits, 0> = false;

//! @brief Copies the tables of the codebooks of all levels to shared memory, if they have any. All threads of the block must
//! call; ends with a barrier.
template <class Codec, int Level = 1, class Context>
TERSUM_BODY void fill_codebooks(Context const& ctx, std::uint32_t* tables)
{
  fill_codebook<Codec, level_quantizer<Codec, Level>>(ctx, tables);
  if constexpr (Level < level_count<Codec>) {
    return fill_codebooks<Codec, Level + 1>(ctx, tables);
  }
  using mean = typename Codec::mean_quantizer_type;
  if constexpr (!sends_in<Codec, mean::bits>) { fill_codebook<Codec, mean>(ctx, tables); }
  if constexpr (has_codebooks<Codec>) { ctx.sync_block(); }
}

//! @name The scales of a chunk, from its energy
//! The energy is m 4^k with 1 <= m < 4, so that quotients and roots are of moderate numbers. Powers of two change no other
//! bits of them, since none is subnormal.
//! @{
//! k, where exponents of floats are.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t exponent_of(std::uint32_t energy) noexcept
{
  return ((energy + 0x00800000u) >> 24 << 23) - 0x20000000u;
}

//! One over the root mean square of `Size` values.
template <int Size, class Context>
[[nodiscard]] TERSUM_BODY float unit_scale(Context const&, float energy)
{
  std::uint32_t const bits     = Context::bits(energy);
  std::uint32_t const exponent = exponent_of(bits);
  float const root             = Context::square_root_moderate(
    Context::divide_moderate(static_cast<float>(Size), Context::from_bits(bits - 2 * exponent)));
  return Context::from_bits(Context::bits(root) - exponent);
}

//! The energy over the sum of |v| * level, which is about the root of the energy where no level is near zero.
//! @tparam Moderate  Of a table of levels. Where kernels have several widths, `divide` takes fewer registers.
template <bool Moderate, class Context>
[[nodiscard]] TERSUM_BODY float energy_over(Context const&, float energy, float products)
{
  if constexpr (Moderate) {
    std::uint32_t const bits     = Context::bits(energy);
    std::uint32_t const exponent = exponent_of(bits);
    float const quotient =
      Context::divide_moderate(Context::from_bits(bits - 2 * exponent),
                               Context::from_bits(Context::bits(products) - exponent));
    return Context::from_bits(Context::bits(quotient) + exponent);
  } else {
    return Context::divide(energy, products);
  }
}
//! @}

//! @brief The sum of the squares of a chunk's values.
template <class Context, int Size>
[[nodiscard]] TERSUM_BODY float energy_of(Context const& ctx,
                                          block_chunk<Size> const& mine,
                                          float* storage,
                                          float const (&v)[32])
{
  float squares = 0.0f;
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { squares = Context::fma(v[k], v[k], squares); }
  return chunk_total(ctx, squares, mine, storage);
}

//! @brief Whether a chunk of this energy is coded: its values are finite, and not next to nothing. Otherwise codes are 0.
[[nodiscard]] TERSUM_INLINE bool is_sound(float energy)
{
  return energy >= 0x1p-100f && is_finite(energy);
}

//! @brief The energy of a chunk that is coded. For others it is 1, so that what is computed of it can be.
[[nodiscard]] TERSUM_INLINE float sound_energy(float energy)
{
  return is_sound(energy) ? energy : 1.0f;
}

//! @brief What levels are multiplied by so that the projection of what is decoded onto the values is the values; NaN if they are not
//! finite, 0 if they are next to nothing.
template <bool Moderate, class Context>
[[nodiscard]] TERSUM_BODY float scale_of_levels(Context const& ctx, float energy, float products)
{
  float const scale = energy_over<Moderate>(ctx, sound_energy(energy), products);
  float const none  = energy < 0x1p-100f ? 0.0f : Context::from_bits(0x7fffffffu);
  return is_sound(energy) ? scale : none;
}

//! @brief Rounds a chunk's values to levels of its root mean square. Returns what the levels are to be multiplied by, on all threads.
//! @param code  code(root, sound) makes codes of a thread's values times `root`, or codes of 0 if the chunk is not sound, and returns the
//!              sum of |v| * level.
template <bool Moderate, class Context, int Size, class Code>
[[nodiscard]] TERSUM_BODY float code_chunk(Context const& ctx,
                                           block_chunk<Size> const& mine,
                                           float* storage,
                                           float const (&v)[32],
                                           Code const& code)
{
  float const energy  = energy_of(ctx, mine, storage, v);
  bool const sound    = is_sound(energy);
  float const product = code(unit_scale<Size>(ctx, sound_energy(energy)), sound);
  return scale_of_levels<Moderate>(ctx, energy, chunk_total(ctx, product, mine, storage));
}

//! @brief Rounds a thread's values times `scale`, one over the root mean square, to codes. Returns their words and the sum of |v| * level.
template <table_codebook Quantizer, class Context>
TERSUM_BODY float code_values(Context const& ctx,
                              std::uint32_t const* tables,
                              float scale,
                              float const (&v)[32],
                              std::uint32_t (&words)[Quantizer::bits])
{
  constexpr int half              = Quantizer::magnitudes;
  std::uint32_t const* const mine = tables + codebook_words<Quantizer>::first;
  auto const* const levels        = reinterpret_cast<float const*>(mine);
  float product                   = 0.0f;
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) {
    float const magnitude = ::fabsf(v[k]);
    std::uint32_t cell    = 0;
    float level           = levels[0];
    if constexpr (has_places<Quantizer>) {
      float const slope = Context::multiply(scale, Quantizer::slope);
      float const place = Context::fma_within_one(magnitude, slope, Quantizer::offset);
      level             = levels[half +
                     static_cast<int>(Context::bits(place) >> cell_places<Quantizer>::shift & 31u)];
      cell              = Context::bits(level) & (half - 1u);
    } else if constexpr (half > 1) {
      // The point of the grid just below the value tells the cell, up to one boundary: see `cell_grid`.
      constexpr int points = cell_grid<Quantizer>::points;
      float const normal   = Context::multiply(magnitude, scale);
      float const shifted  = Context::fma(normal, static_cast<float>(points), 8388607.5f);
      std::int32_t const point =
        Context::add_clamp(static_cast<std::int32_t>(Context::bits(shifted)),
                           -0x4b000000,
                           cell_grid<Quantizer>::count - 1);
      cell = reinterpret_cast<std::uint8_t const*>(mine + 2 * half)[point];
      cell += normal >= levels[half + static_cast<int>(cell)] ? 1u : 0u;
      level = levels[cell];
    }
    product = Context::fma(magnitude, level, product);
    thread_codes<Quantizer::bits>::put_signed(ctx, words, k, cell, v);
  }
  return product;
}

//! @brief Adds scale times the level of code k of a thread's words to its value k.
template <class Quantizer, class Context>
TERSUM_BODY void add_level(Context const&,
                           std::uint32_t const* tables,
                           std::uint32_t const (&words)[Quantizer::bits],
                           int k,
                           float scale,
                           float (&v)[32])
{
  constexpr int bits = Quantizer::bits;
  auto const* const levels =
    reinterpret_cast<float const*>(tables + codebook_words<Quantizer>::first);
  std::uint32_t const code  = thread_codes<bits>::get(words, k);
  std::uint32_t const level = Context::bits(levels[code & (Quantizer::magnitudes - 1u)]);
  std::uint32_t const sign  = (code >> (bits - 1) & 1u) << 31;
  v[k]                      = Context::fma(Context::from_bits(level ^ sign), scale, v[k]);
}

//! @brief Whether a warp decodes in step from the lanes of a codebook.
template <class Codec, class Quantizer>
inline constexpr bool decodes_in_step = requires
{
  requires looks_up_in_step<Codec> && codebook_lanes<Quantizer>::decodes;
};

//! @brief What `add_codes` would make of zeros: each lane multiplies the level that the others look up.
template <table_codebook Quantizer, class Context>
TERSUM_BODY void scaled_levels(Context const& ctx,
                               std::uint32_t const* from,
                               float scale,
                               float (&v)[32])
{
  using codes = thread_codes<Quantizer::bits>;
  std::uint32_t words[Quantizer::bits];
  codes::load(ctx, from, words);
  float const level = Context::fma(codebook_lanes<Quantizer>::of_code(ctx), scale, 0.0f);
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { v[k] = ctx.shuffle(level, codes::get(words, k)); }
}

}  // namespace tersum::inline v0::detail
