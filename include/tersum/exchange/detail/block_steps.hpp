// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The first state, from agreed scalars to steps, and from decoded sums to the head-room of the next exchange. Kernel bodies.

#pragma once

#include <tersum/block/chunk_step.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_coding.hpp>
#include <tersum/exchange/detail/block_measure.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Some records of a plan, passed by value so that no host memory has to outlive the call.
template <class Record>
struct record_batch {
  static constexpr std::uint32_t capacity = 32;
  Record records[capacity];
  std::uint32_t first;  //!< Number of the first one.
  std::uint32_t count;

  //! Writes them, a thread each.
  template <class Context>
  TERSUM_BODY void write(Context const& ctx, Record* to) const
  {
    std::uint32_t const i = ctx.thread_rank();
    if (i < count) { to[first + i] = records[i]; }
  }
};

//! @brief Writes one tensor's record and its chunks' entries a block; block 0 of the first batch writes the header.
template <class Codec, class Element, class Context>
TERSUM_BODY void initialize_tensors(Context const& ctx,
                                    exchange_args<Codec, Element> const& args,
                                    record_batch<tensor_record> const& batch,
                                    std::uint64_t seed,
                                    std::uint64_t coordinates,
                                    std::uint64_t fingerprint)
{
  std::uint64_t const number = batch.first + ctx.block_rank();
  if (number == 0 && ctx.thread_rank() == 0) {
    *args.header = first_header(args, seed, coordinates, key_of_signs<Codec>(0, seed), fingerprint);
    args.bypassed.first_gain();
  }
  if (number >= args.tensors) { return; }
  tensor_record const& record = batch.records[ctx.block_rank()];
  if (ctx.thread_rank() == 0) { args.records[number] = record; }
  if constexpr (in_chunks<Codec>) {
    for (std::uint64_t i = ctx.thread_rank(); i < record.chunks; i += ctx.block_threads()) {
      args.table[record.first_chunk + i] =
        entry_of<Codec>(record, i, static_cast<std::uint32_t>(number));
    }
  }
}

template <class Context>
inline constexpr int step_threads = tuning_of<Context>.cuda.step_threads;

//! Threads of a block of the tensor bodies, one block a subtree. Sums of floats depend on it.
inline constexpr int tensor_threads = 1024;
//! Their shared memory for `sums` at a time, bytes.
inline constexpr int tensor_shared(int sums) { return tensor_threads * 8 * sums; }

//! @brief Refuses a head-room whose factor() is for the host alone. nvcc only warns where code for host and device, such as
//! `derive_step`, calls such a function, and leaves the kernel empty; called from this kernel it is an error.
template <class Codec, class Element>
TERSUM_BODY void require_factor_of_device(
  [[maybe_unused]] exchange_args<Codec, Element> const& args)
{
  if constexpr (has_steps<Codec>) {
    static_cast<void>(args.codec.coder.range.headroom.factor(args.world, 1.0f));
  }
}

//! @brief Clears the words of the payload that no chosen chunk uses: they travel as zeros.
//! @{
template <class... Given>
TERSUM_BODY void clear_unused_words(Given const&...)
{
}
template <selects Codec, class Element, class Context>
requires(!has_parts<Codec>) TERSUM_BODY
  void clear_unused_words(Context const& ctx,
                          exchange_args<Codec, Element> const& args,
                          std::uint64_t thread,
                          std::uint64_t threads)
{
  std::uint64_t const words =
    static_cast<std::uint64_t>(args.selection.rule.capacity) * args.selection.rule.unit_words;
  for (std::uint64_t at = args.selection.scratch->header.base[0] + thread; at < words;
       at += threads) {
    ctx.store(args.payload + at, 0u);
  }
}
//! @}

//! @brief `derive_step` of every chunk. One thread a chunk.
template <class Codec, class Element, class Context>
TERSUM_BODY void derive_steps(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  auto const chunk = std::uint64_t{ctx.block_rank()} * step_threads<Context> + ctx.thread_rank();
  std::uint64_t const threads =
    static_cast<std::uint64_t>(ctx.grid_blocks()) * step_threads<Context>;
  clear_unused_words(ctx, args, chunk, threads);
  if constexpr (moves_with_codes<Codec>) {
    for (std::uint64_t at = chunk; at < args.bypassed.count; at += threads) {
      if (!is_finite(ctx.load(args.bypass + at))) { raise_flag(args); }
    }
  }
  require_factor_of_device(args);
  if (chunk < args.chunks) { derive_step(args, chunk); }
}

//! @brief Whether a chunk can be encoded as soon as its own step is known. Feedback must know of all gradients whether they are
//! finite, and words that no chosen chunk takes have to be cleared.
template <class Codec>
inline constexpr bool derives_in_encode =
  has_steps<Codec> && !selects<Codec> && !moves_with_codes<Codec> && !Codec::rotates_all;

//! @brief Derives the steps of a block's chunks and encodes them, whole or not. The first thread of a chunk derives its step.
//! Same grid as `encode_chunks`.
template <class Codec, class Element, class Context>
TERSUM_BODY void derive_and_encode(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  require_factor_of_device(args);
  own_chunk<Codec> const mine = number_chunk<Codec>(ctx, 0);
  if (mine.thread == 0 && mine.chunk < args.chunks) { derive_step(args, mine.chunk); }
  own_chunk<Codec>::hadamard::synchronize(ctx);
  encode_chunks<true, true>(ctx, args, 0);
}

//! @brief How many blocks the tensor bodies take.
[[nodiscard]] TERSUM_INLINE constexpr std::uint64_t tensor_blocks(std::uint64_t tensors,
                                                                  std::uint64_t chunks)
{
  return tensors + subtrees_of(chunks) - 1;
}

//! @brief A subtree of the sum over a tensor's chunks.
struct tensor_subtree {
  std::uint64_t tensor;
  std::uint64_t first;     //!< Its first chunk.
  std::uint64_t chunks;    //!< Its chunks.
  std::uint64_t subtrees;  //!< Of the tensor; 0 where a block has none.
};

//! @brief The subtree of this block. Blocks have the first ones of all tensors, then the others by where they begin: in each
//! 1024 chunks that follow a multiple of 1024 at most one does, of the tensor that has the first of these chunks. For a second
//! one would be of another tensor, that begins between them, and has its own first 1024 chunks to go.
template <class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY tensor_subtree find_subtree(Context const& ctx,
                                                      exchange_args<Codec, Element> const& args)
{
  tensor_subtree mine{.tensor = ctx.block_rank(), .first = 0, .chunks = 0, .subtrees = 0};
  std::uint64_t before = 0;  // chunks of the tensor
  std::uint64_t number = 0;
  if (mine.tensor >= args.tensors) {
    std::uint64_t const at = (mine.tensor - args.tensors + 1) * subtree_chunks;
    if (at >= args.chunks) { return mine; }
    mine.tensor = args.table[at].tensor;
    number = (at - args.records[mine.tensor].first_chunk + subtree_chunks - 1) / subtree_chunks;
    before = number * subtree_chunks;
    if (number == 0) { return mine; }
  }
  tensor_record const& record = args.records[mine.tensor];
  std::uint64_t const all     = subtrees_of(record.chunks);
  if (number >= all) { return mine; }
  mine.subtrees = all;
  mine.first    = record.first_chunk + before;
  mine.chunks   = number + 1 < all ? subtree_chunks : record.chunks - before;
  return mine;
}

//! @brief Adds up over a tensor: the first thread of the last block of the tensor gets the sums, and true. Sums of subtrees are kept in
//! the steps of their chunks, which nothing reads any more once they are added.
//! @param sums  Zeros.
//! @param term  term(sums, chunk) adds those of a chunk.
template <std::size_t N, class Codec, class Element, class Context, class Term>
[[nodiscard]] TERSUM_BODY bool add_over_tensor(Context const& ctx,
                                               exchange_args<Codec, Element> const& args,
                                               tensor_subtree const& mine,
                                               double (&sums)[N],
                                               Term const& term)
{
  unsigned const t = ctx.thread_rank();
  auto const keep  = [&](std::uint64_t chunk) {
    return reinterpret_cast<std::uint64_t*>(args.steps + chunk);
  };
  // One chunk, or two in the last subtree of a tensor.
  TERSUM_NO_UNROLL
  for (std::uint64_t i = t; i < mine.chunks; i += tensor_threads) { term(sums, mine.first + i); }
  // Of the subtree, then of the tensor.
  TERSUM_NO_UNROLL
  for (bool last = mine.subtrees == 1;; last = true) {
    block_totals<tensor_threads>(ctx, sums);
    if (last) { return t == 0; }
    auto* const comes_last = static_cast<std::uint32_t*>(ctx.shared());
    if (t == 0) {
      std::uint64_t* const kept = keep(mine.first);
      TERSUM_UNROLL
      for (std::size_t j = 0; j < N; ++j) { ctx.store(kept + j, bit_cast<std::uint64_t>(sums[j])); }
      bool const is_last =
        ctx.is_last(&args.records[mine.tensor].arrived, static_cast<std::uint32_t>(mine.subtrees));
      *comes_last = is_last ? 1u : 0u;
    }
    ctx.sync_block();
    bool const goes_on = *comes_last != 0;
    ctx.sync_block();
    if (!goes_on) { return false; }
    TERSUM_UNROLL
    for (std::size_t j = 0; j < N; ++j) { sums[j] = 0; }
    std::uint64_t const first = args.records[mine.tensor].first_chunk;
    TERSUM_NO_UNROLL
    for (std::uint64_t k = t; k < mine.subtrees; k += tensor_threads) {
      std::uint64_t const* const kept = keep(first + k * subtree_chunks);
      TERSUM_UNROLL
      for (std::size_t j = 0; j < N; ++j) {
        sums[j] = sums[j] + bit_cast<double>(ctx.load(kept + j));
      }
    }
  }
}

//! @brief The squared norm of every tensor, from the norms of its chunks, to the wire. One block a subtree.
template <class Codec, class Element, class Context>
TERSUM_BODY void tensor_norms(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using scalar              = typename Codec::range_type::scalar;
  tensor_subtree const mine = find_subtree(ctx, args);
  if (mine.subtrees == 0) { return; }
  double sums[1]  = {};
  auto const term = [&](double(&sum)[1], std::uint64_t chunk) {
    sum[0] = sum[0] + static_cast<double>(args.steps[chunk].encode);
  };
  if (add_over_tensor(ctx, args, mine, sums, term)) {
    std::uint64_t const element = (per_tensor<Codec> ? 0 : args.chunks) + mine.tensor;
    static_cast<scalar*>(args.agreed)[element] =
      to_agreed<scalar>(static_cast<float>(sums[0]), true);
  }
}

//! @brief Whether the end of an exchange has anything to add up.
template <class Codec>
inline constexpr bool adds_up_at_end = has_steps<Codec> && (saturates<Codec> || tracks<Codec>);

//! @brief How many sums `finish_exchange` has at a time.
template <class Codec>
inline constexpr int sums_at_end = (tracks<Codec> ? 1 : 0) + (saturates<Codec> ? 1 : 0) +
                                   (tracks<Codec> && norms_travel<Codec> ? 1 : 0);

//! @brief Counts saturated lanes and measures the correlation of the ranks. One block a subtree.
template <class Codec, class Element, class Context>
TERSUM_BODY void finish_tensors(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using scalar               = typename Codec::norm_scalar;
  scalar const* const agreed = static_cast<scalar const*>(args.agreed);
  tensor_subtree const mine  = find_subtree(ctx, args);
  if (mine.subtrees == 0) { return; }
  // Of squares, if they are tracked, of lanes at a limit, and of norms of chunks.
  constexpr int count_of_lanes                 = tracks<Codec> ? 1 : 0;
  constexpr int count                          = sums_at_end<Codec>;
  double sums[static_cast<std::size_t>(count)] = {};
  auto const term                              = [&](auto& sum, std::uint64_t chunk) {
    chunk_step const step = args.steps[chunk];
    if (saturates<Codec>) {
      sum[count_of_lanes] = sum[count_of_lanes] + static_cast<double>(step.saturated);
    }
    if (tracks<Codec>) {
      if (stays_behind<Codec>(step)) { return; }
      sum[0] = add_energy(sum[0], step);
      if (norms_travel<Codec>) {
        sum[count - 1] = sum[count - 1] + static_cast<double>(to_float(agreed[chunk]));
      }
    }
  };
  if (!add_over_tensor(ctx, args, mine, sums, term)) { return; }
  finish_tensor(args, mine.tensor, sums[0], sums[count_of_lanes], sums[count - 1]);
}

//! @brief Ends an exchange: counts saturated lanes, measures the correlation of the ranks, and numbers the next step of
//! training. One block a subtree; there is one block if there is no tensor, or nothing to add up.
template <class Codec, class Element, class Context>
TERSUM_BODY void finish_exchange(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  if (ctx.block_rank() == 0 && ctx.thread_rank() == 0) { end_step(args); }
  if constexpr (adds_up_at_end<Codec>) { finish_tensors(ctx, args); }
}

}  // namespace tersum::inline v0::detail
