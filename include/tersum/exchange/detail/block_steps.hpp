// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! From agreed scalars to steps, and from decoded sums to the head-room of the next exchange. Kernel bodies.

#pragma once

#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_coding.hpp>
#include <tersum/exchange/detail/block_measure.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr int step_threads = tuning_of<Context>.cuda.step_threads;

//! Threads of a block of the tensor bodies, one block a tensor. Sums of floats depend on it.
inline constexpr int tensor_threads = 1024;
inline constexpr int tensor_shared  = tensor_threads * 8;  //!< Their shared memory, bytes.

//! @brief The step of a chunk from the agreed scalars, and the flag of a gradient that is not finite.
template <class Codec, class Element>
TERSUM_BODY void derive_step(exchange_args<Codec, Element> const& args, std::uint64_t chunk)
{
  using scalar               = typename Codec::norm_scalar;
  scalar const* const agreed = static_cast<scalar const*>(args.agreed);
  bool poisoned              = false;
  if constexpr (delays<Codec>) {
    tensor_record const& record = args.records[args.table[chunk].tensor];
    args.steps[chunk] = followed_step(args.codec, args.world, args.steps[chunk], record.ratio);
  } else if constexpr (!has_steps<Codec>) {
    poisoned = has_agreed(args) && energy_bits(agreed[chunk], args.world) == 0x7f800000u;
  } else {
    std::uint32_t const tensor  = args.table[chunk].tensor;
    tensor_record const& record = args.records[tensor];
    float const measured =
      has_agreed(args) ? to_float(agreed[per_tensor<Codec> ? tensor : chunk]) : 0.0f;
    // A head-room whose factor() is for the host alone must not compile. nvcc only warns where code for host and device
    // calls such a function, and leaves the kernel empty; called from this kernel it is an error.
    static_cast<void>(args.codec.range.headroom.factor(args.world, record.ratio));
    chunk_step const step = step_on_level(
      args.codec, find_place(args, chunk).level, args.world, measured, record.ratio, record.chunks);
    poisoned          = is_poisoned(step);
    args.steps[chunk] = step;
  }
  if (poisoned) { raise_flag(args); }
}

//! @brief `derive_step` of every chunk. One thread a chunk.
template <class Codec, class Element, class Context>
TERSUM_BODY void derive_steps(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  std::uint64_t const chunk =
    static_cast<std::uint64_t>(ctx.block_rank()) * step_threads<Context> + ctx.thread_rank();
  if constexpr (selects<Codec> && !has_parts<Codec>) {
    // Words of the payload that no chosen chunk uses travel as zeros.
    std::uint64_t const words =
      static_cast<std::uint64_t>(args.selection.rule.capacity) * args.selection.rule.unit_words;
    std::uint64_t const threads =
      static_cast<std::uint64_t>(ctx.grid_blocks()) * step_threads<Context>;
    for (std::uint64_t at = args.selection.scratch->header.base[0] + chunk; at < words;
         at += threads) {
      ctx.store(args.payload + at, 0u);
    }
  }
  if constexpr (moves_with_codes<Codec>) {
    std::uint64_t const threads =
      static_cast<std::uint64_t>(ctx.grid_blocks()) * step_threads<Context>;
    for (std::uint64_t at = chunk; at < args.bypassed.count; at += threads) {
      if (!is_finite(ctx.load(args.bypass + at))) { raise_flag(args); }
    }
  }
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
  using hadamard              = typename own_chunk<Codec>::hadamard;
  own_chunk<Codec> const mine = number_chunk<Codec>(ctx, 0);
  if (mine.thread == 0 && mine.chunk < args.chunks) { derive_step(args, mine.chunk); }
  hadamard::synchronize(ctx);
  encode_chunks<false>(ctx, args, 0);
  hadamard::synchronize(ctx);
  encode_chunks<true>(ctx, args, 0);
}

//! @brief The squared norm of every tensor, from the norms of its chunks, to the wire. One block a tensor.
template <class Codec, class Element, class Context>
TERSUM_BODY void tensor_norms(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using scalar                = typename Codec::range_type::scalar;
  tensor_record const& record = args.records[ctx.block_rank()];
  double sum                  = 0;
  for (std::uint64_t i = ctx.thread_rank(); i < record.chunks; i += tensor_threads) {
    sum = sum + static_cast<double>(args.steps[record.first_chunk + i].encode);
  }
  sum                         = block_total<tensor_threads>(ctx, sum);
  std::uint64_t const element = (per_tensor<Codec> ? 0 : args.chunks) + ctx.block_rank();
  if (ctx.thread_rank() == 0) {
    static_cast<scalar*>(args.agreed)[element] = to_agreed<scalar>(static_cast<float>(sum), true);
  }
}

//! @brief The mean energy of every tensor, in whose units a choice counts those of its chunks. One block a tensor.
template <class Codec, class Element, class Context>
TERSUM_BODY void mean_energies(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using scalar                = typename Codec::norm_scalar;
  scalar const* const agreed  = static_cast<scalar const*>(args.agreed);
  tensor_record const& record = args.records[ctx.block_rank()];
  energy_mean mean;
  for (std::uint64_t i = ctx.thread_rank(); i < record.chunks; i += tensor_threads) {
    mean.add(energy_bits(agreed[record.first_chunk + i], args.world));
  }
  double const sum   = block_total<tensor_threads>(ctx, static_cast<double>(mean.sum));
  double const count = block_total<tensor_threads>(ctx, static_cast<double>(mean.count));
  if (ctx.thread_rank() == 0) {
    mean = {static_cast<std::uint64_t>(sum), static_cast<std::uint64_t>(count)};
    means_of(args)[ctx.block_rank()] = mean.bits();
  }
}

//! @brief Ends an exchange: counts saturated lanes, measures the correlation of the ranks, and numbers the next step of
//! training. A block has one tensor; there is one block if there is no tensor.
template <class Codec, class Element, class Context>
TERSUM_BODY void finish_exchange(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  unsigned const t = ctx.thread_rank();
  if constexpr (has_steps<Codec> && (saturates<Codec> || tracks<Codec>)) {
    if (ctx.block_rank() < args.tensors) {
      using scalar               = typename Codec::norm_scalar;
      tensor_record& record      = args.records[ctx.block_rank()];
      scalar const* const agreed = static_cast<scalar const*>(args.agreed);
      std::uint64_t const chunks = record.chunks;  // read once, before anything is stored
      double energy = 0, of_sum = 0;
      std::uint32_t lanes = 0;  // at a limit; a thread has fewer than 2^32
      // 1024 threads have loads enough under way; unrolled further, ptxas spills registers on sm_100.
      TERSUM_UNROLL_TWICE
      for (std::uint64_t i = t; i < chunks; i += tensor_threads) {
        chunk_step const step = args.steps[record.first_chunk + i];
        if constexpr (saturates<Codec>) { lanes += step.saturated; }
        if constexpr (tracks<Codec> && !delays<Codec>) {
          if (stays_behind<Codec>(step)) { continue; }
          of_sum = add_energy(of_sum, step);
          if constexpr (norms_travel<Codec>) {
            energy = energy + static_cast<double>(to_float(agreed[record.first_chunk + i]));
          }
        }
      }
      if constexpr (delays<Codec>) {
        // A loop of its own: unrolled with the other it would spill.
        TERSUM_UNROLL_ONCE
        for (std::uint64_t i = t; i < chunks; i += tensor_threads) {
          double const next = followed_range(
            args.codec, args.world, args.steps[record.first_chunk + i], record.ratio);
          of_sum = ::fma(next, next, of_sum);
        }
      }
      // The first thread has the totals.
      if constexpr (tracks<Codec>) { of_sum = block_total<tensor_threads>(ctx, of_sum); }
      if constexpr (saturates<Codec>) {
        double const saturated = block_total<tensor_threads>(ctx, static_cast<double>(lanes));
        if (t == 0) { record.saturated = static_cast<std::uint64_t>(saturated); }
        if constexpr (tracks<Codec> && !delays<Codec>) {
          if (is_saturated<Codec>(saturated, chunks)) { of_sum = 4 * of_sum; }
        }
      }
      if constexpr (delays<Codec>) {
        if (t == 0 && chunks > 0) { record.ratio = mean_range(of_sum, chunks); }
      } else if constexpr (tracks<Codec>) {
        if constexpr (norms_travel<Codec>) {
          energy = block_total<tensor_threads>(ctx, energy) / args.world;
        } else {
          energy = static_cast<double>(
            to_float(agreed[(per_tensor<Codec> ? 0 : args.chunks) + ctx.block_rank()]));
        }
        if (t == 0) {
          record.ratio = correlation_ratio<Codec>(of_sum, energy, args.world, chunks, record.ratio);
        }
      }
    }
  }
  if (ctx.block_rank() == 0 && t == 0) {
    args.header->step     = args.header->step + 1;
    args.header->sign_key = sign_key(args.header->step, args.header->seed);
  }
}

}  // namespace tersum::inline v0::detail
