// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a range's plain form measures of every chunk. Kernel body.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/exchange/detail/block_pairs.hpp>
#include <tersum/exchange/detail/block_values.hpp>
#include <tersum/exchange/detail/steps.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The grid of `measure_chunks`: chunks lie in shared memory, with as much scratch.
template <class Codec>
inline constexpr int measure_shared = maximum(
  shared_bytes<Codec>, chunk_memory<Codec::chunk_size>::tile_floats* tiles_per_block<Codec> * 4);

//! @brief Calls `measure` of the codec's range with each chunk, rotated or not. Otherwise the launch of `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void measure_chunks(Context const& ctx,
                                exchange_args<Codec, Element> const& args,
                                std::uint64_t first_chunk)
{
  using hadamard        = typename own_chunk<Codec>::hadamard;
  using range           = typename Codec::range_type;
  using memory          = chunk_memory<Codec::chunk_size>;
  using order           = chunk_order<Codec::chunk_size>;
  constexpr int tile    = maximum(memory::tile_floats, hadamard::storage_floats);
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float* const storage =
    static_cast<float*>(ctx.shared()) + (hadamard::in_warp ? ctx.thread_rank() / 32 * tile : 0);
  memory const own{storage, mine};
  float v[32];
  if constexpr (range::measures_rotated) {
    load_signed<Edge>(ctx, args, mine, storage, v);
    hadamard::to_wire(ctx, v, storage, mine.thread, mine.first);
    hadamard::synchronize(ctx);
    float const root = rotation_root<Codec>(1);
    for (unsigned k = 0; k < 32; ++k) {
      own.x()[order::coordinate(32 * mine.thread + k)] = Context::divide(v[k], root);
    }
  } else {
    load_coordinates<Edge>(ctx, args, mine, v);
    for (int i = 0; i < 32; ++i) { own.x()[mine.coordinate(i)] = v[i]; }
  }
  hadamard::synchronize(ctx);
  block_group<Context, hadamard::threads> const group{ctx, own.words()};
  float const measured = args.codec.range.measure(group, own.x(), own.scratch());
  if (mine.active && mine.thread == 0) {
    using scalar = typename range::scalar;
    ctx.store(static_cast<scalar*>(args.agreed) + mine.chunk, to_agreed<range>(measured));
  }
}

}  // namespace tersum::inline v0::detail
