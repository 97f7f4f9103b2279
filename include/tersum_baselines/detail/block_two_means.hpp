// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of `group_two_means` on the threads of a kernel, to the same bits as on a thread of the CPU.
//!
//! A thread of a kernel has eight neighbouring coordinates in each quarter of its chunk, and a group of B coordinates belongs to B / 8
//! neighbouring threads. What a group gathers is joined over the eight in order, and then pairwise over the threads.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/block/thread_norm.hpp>
#include <tersum/coder/detail/block_scaled_codes.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/detail/block_codebook.hpp>
#include <tersum/quantize/dither.hpp>

#include <cmath>
#include <cstdint>

namespace tersum::inline v0 {

template <int Block>
struct group_two_means;

}  // namespace tersum::inline v0

namespace tersum::inline v0::detail {

//! @brief The chunk's scale is its largest magnitude: NaN from 2^100 on, where sums of groups may overflow, and zero, as are
//! the words, if it is next to nothing.
template <int Block>
struct part_codes<group_two_means<Block>> {
  using quantizer = group_two_means<Block>;

  template <class Part>
  TERSUM_BODY static void add(Part const& own,
                              std::uint32_t const* codes,
                              float scale,
                              float (&v)[32])
  {
    using context = typename Part::context_type;
    context_arithmetic<context> const arithmetic{};
    std::uint32_t words[1];
    thread_codes<1>::load(own.ctx, codes + own.mine.thread, words);
    TERSUM_UNROLL
    for (unsigned r = 0; r < 4; ++r) {
      std::uint32_t const ends = own.ctx.load(codes + ends_word(Part::size, own.mine.thread, r));
      TERSUM_UNROLL
      for (unsigned k = 8 * r; k < 8 * r + 8; ++k) {
        v[k] = context::add(v[k], quantizer::value(arithmetic, ends, scale, words[0] >> k & 1u));
      }
    }
  }

  template <class Dither, class Part>
  TERSUM_BODY static void encode(
    Part const& own, float const (&v)[32], dither_key const&, float share_of, std::uint32_t* part)
  {
    using context            = typename Part::context_type;
    std::uint32_t const most = context::bits(thread_norm<32>::largest(own.ctx, v));
    float const whole = context::from_bits(chunk_maximum(own.ctx, most, own.mine, own.storage));
    bool const sound  = whole < 0x1p100f && whole >= 0x1p-100f;
    std::uint32_t ends[4];
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) { ends[r] = gather(own.ctx, v, 8 * r, sound ? whole : 1.0f); }
    if (!own.mine.active || own.place.level == 0) { return; }
    if (own.mine.thread == 0) {
      float const said = whole < 0x1p100f ? 0.0f : context::from_bits(0x7fffffffu);
      own.ctx.store(part + own.map.scale_word(own.place.index),
                    context::bits(context::multiply(sound ? whole : said, share_of)));
    }
    std::uint32_t words[1] = {};
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { words[0] |= (v[k] < 0 ? 0u : 1u) << k; }
    words[0]                   = sound ? words[0] : 0u;
    std::uint32_t* const codes = part + own.place.word;
    thread_codes<1>::store(own.ctx, words, codes + own.mine.thread);
    if (own.mine.thread % (Block / 8) == 0) {
      TERSUM_UNROLL
      for (unsigned r = 0; r < 4; ++r) {
        own.ctx.store(codes + ends_word(Part::size, own.mine.thread, r), sound ? ends[r] : 0u);
      }
    }
  }

 private:
  //! The word of a group's ends, counted from the chunk's codes. `thread` has coordinates of the group.
  [[nodiscard]] TERSUM_BODY static unsigned ends_word(int size, unsigned thread, unsigned quarter)
  {
    return static_cast<unsigned>(size / 32) + thread / (Block / 8) * 4 + quarter;
  }

  //! The ends of the group that eight of a thread's values belong to. All threads of the warp must call.
  template <class Context>
  TERSUM_BODY static std::uint32_t gather(Context const& ctx,
                                          float const (&v)[32],
                                          int from,
                                          float whole)
  {
    constexpr int fields = quantizer::fields;
    context_arithmetic<Context> const arithmetic{};
    float field[extent(fields)];
    quantizer::first(v[from], field);
    TERSUM_UNROLL
    for (int i = 1; i < 8; ++i) {
      float one[extent(fields)];
      quantizer::first(v[from + i], one);
      quantizer::join(arithmetic, one, field);
    }
    TERSUM_UNROLL
    for (unsigned step = 1; step < Block / 8; step *= 2) {
      float other[extent(fields)];
      TERSUM_UNROLL
      for (int f = 0; f < fields; ++f) { other[f] = ctx.shuffle_xor(field[f], step); }
      quantizer::join(arithmetic, other, field);
    }
    return quantizer::ends(arithmetic, field, whole);
  }
};

}  // namespace tersum::inline v0::detail
