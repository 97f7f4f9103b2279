// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One hop of a per-hop codec: kernel body. Its other rounds are those of two_shot, whose parts are the elements here.

#pragma once

#include <tersum/baseline/detail/exchange_tiles.hpp>
#include <tersum/baseline/detail/tile_map.hpp>
#include <tersum/baseline/hop_tile.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/block_parts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/reduce/detail/array_operands.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief The chunks that a reduction adds, by the names that codecs give to their policies. Hops do not rotate, but threads
//! have the coordinates of a chunk that rotations leave them.
template <requantizing Op, class Quantizer = typename Op::quantizer_type>
struct hop_coding {
  using chunker_type = typename Op::chunker_type;
  using rotator_type = std::
    conditional_t<codebook<Quantizer>, partial_hadamard<chunker_type::chunk_size>, no_rotation>;
  using quantizer_type = Quantizer;
  using feedback_type  = no_feedback;
  using agreement_kind = agreement::none;
  using payload_kind   = payload::hops;
  using payload_op     = Op;
  using rotation       = typename rotation_of<rotator_type, chunker_type::chunk_size>::type;

  static constexpr int chunk_size         = chunker_type::chunk_size;
  static constexpr bool rotates_chunks    = transforms_registers<rotation>;
  static constexpr bool rotates_in_memory = false;

  template <int Level>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto at_level() const noexcept
  {
    return hop_coding<Op, typename Op::template quantizer_at<Level>>{};
  }
};

//! @brief Loads the head of a tile.
template <class Context>
[[nodiscard]] TERSUM_BODY tile_head load_head(Context const& ctx, tile_head const& from)
{
  tile_head head;
  TERSUM_UNROLL
  for (int w = 0; w < tile_head::words; w += 4) {
    word4 const four = ctx.load(reinterpret_cast<word4 const*>(from.word + w));
    head.word[w]     = four.x;
    head.word[w + 1] = four.y;
    head.word[w + 2] = four.z;
    head.word[w + 3] = four.w;
  }
  return head;
}

//! @brief Writes the words of a tile that are neither codes nor scales: its head, and zeros. All threads of a chunk call it.
template <class Op, class Context>
TERSUM_BODY void write_rest(Context const& ctx,
                            unsigned thread,
                            tile_head const& head,
                            tile_counts<Op> const& counts,
                            typename Op::element& to)
{
  if (thread < tile_head::words) {
    ctx.store(to.about.word + thread, ctx.load(head.word + thread));
  }
  std::uint32_t const chunks = counts.chunks();
  auto const end             = static_cast<int>(Op::element::room - chunks);
  for (int at = static_cast<int>(counts.words() - chunks + thread); at < end;
       at += Op::chunk_size / 32) {
    ctx.store(to.word + at, 0u);
  }
}

//! @brief to[i] = op(a[i], b[i]) for `count` elements, all arrays aligned to 16 bytes; `to` may be `a` or `b`. One
//! pass.
//!
//! Chunks are numbered as if all elements held as many as one can. The heads of `a` and `b` are equal, so that it does not
//! matter in which order threads write them. They are read in `heads`: `a`, or where `a` has been written by this launch, in
//! which the chunks of an element are those of several blocks, what its heads were taken from.
template <requantizing Op, class Context>
TERSUM_BODY void requantize_elements(Context const& ctx,
                                     typename Op::element* to,
                                     typename Op::element const* a,
                                     typename Op::element const* b,
                                     typename Op::element const* heads,
                                     std::size_t count)
{
  using codec   = hop_coding<Op>;
  using element = typename Op::element;
  exchange_args<codec, float> const args{};
  own_part<codec, float, Context> own{ctx, args, tile_map<Op>{}};
  own.mine                   = number_chunk<codec>(ctx, 0);
  std::uint64_t const number = own.mine.chunk / element::chunks;
  auto const index           = static_cast<std::uint32_t>(own.mine.chunk % element::chunks);
  own.mine.active            = number < count;
  dither_key key{};
  if (own.mine.active) {
    if constexpr (Op::tiles) {
      tile_head const head         = load_head(ctx, heads[number].about);
      tile_counts<Op> const counts = Op::counts_of(head);
      own.place                    = counts.place(index);
      own.mine.active              = own.place.level > 0;
      own.mine.chunk               = Op::number_of(head, index);
      if (own.mine.active) {
        key = Op::key_of(head, own.scale_in(a[number].word), own.scale_in(b[number].word));
      }
      if (index == 0) {
        write_rest<Op>(ctx, own.mine.thread, heads[number].about, counts, to[number]);
      }
    } else {
      own.place = tile_counts<Op>{{0, element::chunks}}.place(index);
    }
  }
  if (all_idle(ctx, own.mine)) { return; }
  float v[32] = {}, other[32] = {};
  own.add(a[number].word, 1.0f, v);
  own.add(b[number].word, 1.0f, other);
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { v[k] = Context::add(v[k], other[k]); }
  own.template encode<typename Op::dither>(v, key, 1.0f, to[number].word);
}

//! @brief The kernel of it, with the blocks of all kernels on parts.
template <requantizing Op>
struct requantize_elements_kernel {
  using element = typename Op::element;

  static constexpr int threads = two_shot_grid<hop_coding<Op>>.threads;
  static constexpr int shared  = two_shot_grid<hop_coding<Op>>.shared;

  array_operands<Op> on;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    requantize_elements<Op>(ctx, on.to, on.a, on.b, on.a, on.count);
  }
};

//! @brief The same for a list of arrays: one hop after the other, chunk by chunk.
template <requantizing Op>
struct requantize_list_kernel : list_operands<Op> {
  static constexpr int threads = requantize_elements_kernel<Op>::threads;
  static constexpr int shared  = requantize_elements_kernel<Op>::shared;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    auto const& from = this->from;
    auto const* sum  = from.array[0];
    for (int i = 1; i < from.count; ++i) {
      requantize_elements<Op>(ctx, this->to, sum, from.array[i], from.array[0], this->count);
      ctx.sync_block();  // a chunk's threads read what others of them have written
      sum = this->to;
    }
  }
};

}  // namespace tersum::inline v0::detail
