// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of an exchange of factors and the order of their launches, the same for a device and its emulator.

#pragma once

#include <tersum/config.hpp>
#include <tersum/lowrank/block_low_rank.hpp>
#include <tersum/lowrank/block_matrix.hpp>
#include <tersum/lowrank/block_products.hpp>
#include <tersum/lowrank/block_rebuild.hpp>
#include <tersum/quantize/block_cast.hpp>
#include <tersum/status.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @name Kernels
//! Called with context and arguments; each says the threads of a block, how many blocks share a multiprocessor at least (which
//! bounds registers), and the bytes of shared memory.
//! @{
struct write_header {
  static constexpr int threads = 32;
  static constexpr int blocks  = 8;
  template <class Codec>
  static constexpr int shared = 0;

  std::uint64_t seed;
  std::uint64_t coordinates;
  std::uint64_t fingerprint;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    if (ctx.thread_rank() != 0) { return; }
    *args.header = {.seed            = seed,
                    .step            = 0,
                    .non_finite_step = 0,
                    .tensors         = args.tensors,
                    .chunks          = args.chunks,
                    .coordinates     = coordinates,
                    .sign_key        = 0,
                    .layout          = fingerprint};
  }
};

struct write_records : table_batch<tensor_record> {
  static constexpr int threads = 32;
  static constexpr int blocks  = 8;
  template <class Codec>
  static constexpr int shared = 0;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    write_table(ctx, *this, args.records);
  }
};

struct write_matrices : table_batch<matrix_record> {
  static constexpr int threads = 32;
  static constexpr int blocks  = 8;
  template <class Codec>
  static constexpr int shared = 0;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    write_table(ctx, *this, args.matrices);
  }
};

//! One block a matrix.
struct start_warm {
  static constexpr int threads = factor_threads;
  static constexpr int blocks  = 8;
  template <class Codec>
  static constexpr int shared = 0;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    refresh_warm(ctx, args, args.matrices[ctx.block_rank()], 1, 0, Codec::agrees);
  }
};

//! One block a tensor.
template <bool Encode>
struct bypass_all {
  static constexpr int threads = 256;
  static constexpr int blocks  = 8;
  template <class Codec>
  static constexpr int shared = 0;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    bypass_tensors<Encode>(ctx, args);
  }
};

//! One block for 64 elements of the columns of a factor: of P when `First`, else of what the exchange sends last.
template <bool First>
struct multiply_all {
  static constexpr int threads = product_threads;
  static constexpr int blocks  = 3;
  template <class Codec>
  static constexpr int shared =
    (64 + (Codec::rank + 7) / 8 * 8) * product_stride* static_cast<int>(sizeof(float));

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    multiply_matrices(ctx, args, First ? 0 : turn_of(args), First ? args.warm : args.factor[0]);
  }
};

//! One block a matrix.
struct settle_all {
  static constexpr int threads = factor_threads;
  static constexpr int blocks  = 2;
  template <class Codec>
  static constexpr int shared = block_factor<int, Codec::rank>::shared;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    settle_factor(ctx, args);
  }
};

//! One block for 64 elements of the columns of a factor.
struct receive_all {
  static constexpr int threads = product_threads;
  static constexpr int blocks  = 8;
  template <class Codec>
  static constexpr int shared = 0;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    receive_factor(ctx, args);
  }
};

//! `rebuild_splits` blocks for 64 rows of a matrix.
struct rebuild_all {
  static constexpr int threads = product_threads;
  static constexpr int blocks  = 4;
  template <class Codec>
  static constexpr int shared = 2 * Codec::rank* product_stride* static_cast<int>(sizeof(float));

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    rebuild_matrices(ctx, args);
  }
};

//! One block a matrix.
struct keep_all_warm {
  static constexpr int threads = factor_threads;
  static constexpr int blocks  = 8;
  template <class Codec>
  static constexpr int shared = 0;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    keep_warm(ctx, args);
  }
};

struct advance_step {
  static constexpr int threads = 32;
  static constexpr int blocks  = 8;
  template <class Codec>
  static constexpr int shared = 0;

  template <class Context, class Codec, class Element>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const
  {
    if (ctx.thread_rank() == 0) { args.header->step = args.header->step + 1; }
  }
};
//! @}

//! @name Launches
//! `launch(kernel, blocks)` enqueues and returns a status; none for 0 blocks.
//! @{

//! After warm start and residual were set to zero.
template <class Codec, class Launch>
[[nodiscard]] status initialize_low_rank(plan<Codec> const& plan,
                                         std::uint64_t seed,
                                         Launch const& launch)
{
  status result  = launch(write_header{seed, plan.coordinates(), plan.state_fingerprint()}, 1);
  auto const add = [&](auto& batch, auto const& record) {
    batch.records[batch.count++] = record;
    if (batch.count < batch.capacity) { return; }
    if (result.ok()) { result = launch(batch, 1); }
    batch.first += static_cast<unsigned>(batch.count);
    batch.count = 0;
  };
  write_records records{};
  plan.for_each_record([&](tensor_record const& r) { add(records, r); });
  if (result.ok()) { result = launch(records, records.count > 0 ? 1 : 0); }
  write_matrices matrices{};
  plan.for_each_matrix([&](matrix_record const& m) { add(matrices, m); });
  if (result.ok()) { result = launch(matrices, matrices.count > 0 ? 1 : 0); }
  return result.ok() ? launch(start_warm{}, plan.chunks()) : result;
}

//! The larger grid of the two turns: which one it is, only the device knows.
template <class Codec>
[[nodiscard]] std::uint64_t blocks_of_turn(plan<Codec> const& plan)
{
  return Codec::agrees ? plan.blocks(1) : maximum(plan.blocks(0), plan.blocks(1));
}

template <class Codec, class Launch>
[[nodiscard]] status encode_low_rank(plan<Codec> const& plan, Launch const& launch)
{
  if (plan.bypassed() > 0) {
    if (status const s = launch(bypass_all<true>{}, plan.tensors()); !s.ok()) { return s; }
  }
  if constexpr (Codec::agrees) {
    return launch(multiply_all<true>{}, plan.blocks(0));
  } else {
    if (status const s = launch(settle_all{}, plan.chunks()); !s.ok()) { return s; }
    return launch(multiply_all<false>{}, blocks_of_turn(plan));
  }
}

template <class Codec, class Launch>
[[nodiscard]] status advance_low_rank(plan<Codec> const& plan, Launch const& launch)
{
  if constexpr (Codec::agrees) {
    if (status const s = launch(settle_all{}, plan.chunks()); !s.ok()) { return s; }
    return launch(multiply_all<false>{}, blocks_of_turn(plan));
  }
  return {};
}

template <class Codec, class Launch>
[[nodiscard]] status decode_low_rank(plan<Codec> const& plan, Launch const& launch)
{
  // All that may find a value that is not finite comes before what keeps residuals.
  if (status const s = launch(receive_all{}, blocks_of_turn(plan)); !s.ok()) { return s; }
  if (plan.bypassed() > 0) {
    if (status const s = launch(bypass_all<false>{}, plan.tensors()); !s.ok()) { return s; }
  }
  if (status const s = launch(rebuild_all{}, plan.row_blocks() * rebuild_splits); !s.ok()) {
    return s;
  }
  if (status const s = launch(keep_all_warm{}, plan.chunks()); !s.ok()) { return s; }
  return launch(advance_step{}, 1);
}
//! @}

}  // namespace tersum::inline v0::detail
