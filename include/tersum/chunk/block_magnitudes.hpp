// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The largest magnitude of every rotated chunk. Kernel bodies.

#pragma once

#include <tersum/chunk/block_source.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/range/settle.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The largest magnitude of each rotated chunk, in units of the gradient. Same launch as `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void chunk_magnitudes(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  std::uint64_t first_chunk)
{
  using hadamard          = typename chunk_share<Codec>::hadamard;
  using scalar            = typename Codec::range_type::scalar;
  chunk_share<Codec> mine = find_share<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float* const storage =
    static_cast<float*>(ctx.shared()) +
    (hadamard::in_warp ? ctx.thread_rank() / 32 * hadamard::storage_floats : 0);
  float v[32];
  load_signed<Edge>(ctx, args, mine, v);
  if constexpr (Codec::rotates_chunks) {
    hadamard::to_wire(ctx, v, storage, mine.thread, mine.first);
    hadamard::synchronize(ctx);
  }
  // As unsigned integers the magnitudes order as floats do, with NaN above infinity.
  std::uint32_t largest = 0;
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { largest = maximum(largest, Context::bits(v[k]) & 0x7fffffffu); }
  largest = chunk_maximum(ctx, largest, mine, storage);
  if (mine.active && mine.thread == 0) {
    float magnitude = Context::from_bits(largest);
    if constexpr (Codec::rotates_chunks || Codec::rotates_all) {
      std::uint64_t const chunks = args.records[args.table[mine.chunk].tensor].chunks;
      magnitude                  = Context::divide(magnitude, rotation_root<Codec>(chunks));
    }
    ctx.store(static_cast<scalar*>(args.agreed) + mine.chunk, to_agreed<scalar>(magnitude, true));
  }
}

//! @brief The largest of one integer a thread over the chunk, on its thread 0. `storage` is free before and after.
template <class Codec, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t chunk_maximum(Context const& ctx,
                                                      std::uint32_t value,
                                                      chunk_share<Codec> const& mine,
                                                      float* storage)
{
  using hadamard         = typename chunk_share<Codec>::hadamard;
  constexpr int in_group = hadamard::threads < 32 ? hadamard::threads : 32;
  TERSUM_UNROLL
  for (unsigned mask = 1; mask < static_cast<unsigned>(in_group); mask *= 2) {
    value = maximum(value, ctx.shuffle_xor(value, mask));
  }
  if constexpr (!hadamard::in_warp) {
    std::uint32_t* const values = reinterpret_cast<std::uint32_t*>(storage);
    if (mine.thread % 32 == 0) { values[mine.thread / 32] = value; }
    ctx.sync_block();
    for (int warp = 0; warp < hadamard::threads / 32; ++warp) {
      value = maximum(value, values[warp]);
    }
    ctx.sync_block();
  }
  return value;
}

}  // namespace tersum::inline v0::detail
