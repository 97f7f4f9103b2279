// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of groups with two ends on the threads of a kernel, to the same bits as on a thread of the CPU.
//!
//! A thread of a kernel has eight neighbouring coordinates in each quarter of its chunk, and a group of B coordinates belongs to B / 8
//! neighbouring threads. What a group gathers is joined over the eight in order, and then pairwise over the threads.

#include <tersum/baseline/detail/cpu_group_affine.hpp>
#include <tersum/baseline/detail/group_line.hpp>
#include <tersum/baseline/detail/group_units.hpp>
#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/block_part_codes.hpp>
#include <tersum/quantize/detail/block_codebook.hpp>
#include <tersum/random/philox.hpp>

#include <cmath>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The chunk's scale is its largest magnitude: NaN if that is not finite, and zero, as are
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
