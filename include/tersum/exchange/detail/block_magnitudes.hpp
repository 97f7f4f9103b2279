// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The largest magnitude of every rotated chunk. Kernel bodies.

#pragma once

#include <tersum/exchange/detail/block_values.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/random/sign_bits.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The largest magnitude of each rotated chunk, in units of the gradient. Same launch as `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void chunk_magnitudes(Context const& ctx,
                                  exchange_args<Codec, Element> const& args,
                                  std::uint64_t first_chunk)
{
  using hadamard        = typename own_chunk<Codec>::hadamard;
  using scalar          = typename Codec::range_type::scalar;
  own_chunk<Codec> mine = find_chunk<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float* const storage =
    static_cast<float*>(ctx.shared()) +
    (hadamard::in_warp ? ctx.thread_rank() / 32 * hadamard::storage_floats : 0);
  float v[32];
  load_signed<Edge>(ctx, args, mine, storage, v);
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
    if constexpr (Codec::rotates_chunks || Codec::rotates_in_memory || Codec::rotates_all) {
      std::uint64_t const chunks = args.records[args.table[mine.chunk].tensor].chunks;
      magnitude                  = Context::divide(magnitude, rotation_root<Codec>(chunks));
    }
    ctx.store(static_cast<scalar*>(args.agreed) + mine.chunk, to_agreed<scalar>(magnitude, true));
  }
}

}  // namespace tersum::inline v0::detail
