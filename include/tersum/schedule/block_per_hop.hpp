// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One hop of a per-hop codec: kernel body. Its other rounds are those of two_shot, whose parts are the blocks here.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/config.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/schedule/block_part_share.hpp>
#include <tersum/schedule/per_hop.hpp>

#include <cstddef>

namespace tersum::inline v0::detail {

//! @brief The codec whose chunks a reduction adds.
template <recoding Op>
using codec_of_op = per_hop_codec<fixed_chunks<Op::chunk_size>,
                                  partial_hadamard<Op::chunk_size>,
                                  typename Op::quantizer_type>;

//! @brief to[i] = op(a[i], b[i]) for `count` blocks, all arrays aligned to 16 bytes; `to` may be `a` or `b`. One pass.
template <recoding Op, class Context>
TERSUM_BODY void recode_elements(Context const& ctx,
                                 typename Op::element* to,
                                 typename Op::element const* a,
                                 typename Op::element const* b,
                                 std::size_t count)
{
  using codec = codec_of_op<Op>;
  exchange_args<codec, float> args{};
  args.chunks = count * Op::element::chunks;
  part_share<codec, float, Context> own{ctx, args};
  own.mine        = number_share<codec>(ctx, 0);
  own.mine.active = own.mine.chunk < args.chunks;
  if (own.mine.active) { own.place = find_part(args, own.map, own.mine.chunk); }
  if (all_idle(ctx, own.mine)) { return; }
  float v[32] = {}, other[32] = {};
  own.add(a[own.place.part].word, 1.0f, v);
  own.add(b[own.place.part].word, 1.0f, other);
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { v[k] = Context::add(v[k], other[k]); }
  own.template encode<no_dither>(v, dither_key{}, 1.0f, to[own.place.part].word);
}

}  // namespace tersum::inline v0::detail
