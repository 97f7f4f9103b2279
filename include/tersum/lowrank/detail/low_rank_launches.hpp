// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of an exchange of factors and the order of their launches, the same for a device and its emulator.

#pragma once

#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/lowrank/detail/block_low_rank.hpp>
#include <tersum/lowrank/detail/factor_stages.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @name Kernels
//! @{
//! A thread a matrix.
struct write_matrices : kernel_of_threads<32, &cuda_tuning::small_blocks> {
  static constexpr unsigned records_a_block = 32;
  record_batch<matrix_record> batch;
  TERSUM_RUNS(batch.write(ctx, args.table))
};

//! One block a matrix.
struct start_warm : kernel_of_threads<factor_threads, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(refresh_warm(
    block_hand<factor_threads, Context>{ctx}, args, args.table[ctx.block_rank()], 1, 0))
};

//! One block for 64 elements of the columns of a factor, and for each slice where its matrix is divided: of P if `First`,
//! otherwise of the factor that the exchange sends last.
template <bool First>
struct multiply_all : kernel_of_threads<product_threads, &cuda_tuning::product_blocks> {
  template <class Codec>
  static constexpr int shared = block_product<Codec, float, int>::shared;

  TERSUM_RUNS(multiply_matrices(
    ctx, args, First ? 0 : turn_of(args), First ? args.parts.warm : args.parts.factor[0]))
};

//! `adders_of_block` blocks for 64 elements of the columns of a factor; only matrices that are divided have work for them.
template <bool First>
struct add_all : kernel_of_threads<product_threads, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(add_matrices(ctx, args, First ? 0 : turn_of(args)))
};

//! One block a matrix.
struct orthonormalize_all : kernel_of_threads<factor_threads, &cuda_tuning::factor_blocks> {
  template <class Codec>
  static constexpr int shared = block_factor<int, Codec::rank>::shared;

  TERSUM_RUNS(orthonormalize_factor(ctx, args))
};

//! One block for 64 elements of the columns of a factor.
struct receive_all : kernel_of_threads<product_threads, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(receive_factor(ctx, args))
};

//! `rebuild_splits` blocks for 64 rows of a matrix.
struct rebuild_all : kernel_of_threads<product_threads, &cuda_tuning::rebuild_blocks> {
  template <class Codec>
  static constexpr int shared = 2 * Codec::rank* product_stride* static_cast<int>(sizeof(float));

  TERSUM_RUNS(rebuild_matrices(ctx, args))
};

//! One block a matrix.
struct keep_all_warm : kernel_of_threads<factor_threads, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(keep_warm(block_hand<factor_threads, Context>{ctx},
                        args,
                        args.table[ctx.block_rank()]))
};
//! @}

template <class Executor, is_low_rank Codec, class Element>
void run_stage(stage::initialize const& stage, launch_list<Executor, Codec, Element>& launches)
{
  launches.run(stage);
  launches.in_batches(write_matrices{},
                      [&](auto const& write) { launches.plan().for_each_matrix(write); });
  launches(start_warm{}, launches.plan().chunks());
}

//! @brief A product: one launch for all matrices, and a second one if some are divided into slices. Alternating, the grids are the
//! larger ones of the two turns, since only the device knows which turn it is.
template <bool First>
void launch_product(launching auto& launches)
{
  using codec          = codec_of<decltype(launches)>;
  auto const& end      = launches.plan().factor_ends();
  std::uint64_t blocks = 0, adders = 0;
  for (int turn = 0; turn < 2; ++turn) {
    if (agrees<codec> && turn != (First ? 0 : 1)) { continue; }
    blocks = maximum(blocks, end.first_product[turn]);
    if (end.first_partial[turn] > 0) { adders = maximum(adders, end.first_block[turn]); }
  }
  launches(multiply_all<First>{}, blocks);
  launches(add_all<First>{}, adders * adders_of_block<codec>);
}

//! Gradient to P, from the warm start.
template <class Executor, is_low_rank Codec, class Element>
void run_stage(stage::measure, launch_list<Executor, Codec, Element>& launches)
{
  launch_product<true>(launches);
}

template <class Executor, is_low_rank Codec, class Element>
void run_stage(stage::orthonormalize, launch_list<Executor, Codec, Element>& launches)
{
  launches(orthonormalize_all{}, launches.plan().chunks());
}

//! Gradient to Q or, when alternating, to the factor of the turn.
template <class Executor, is_low_rank Codec, class Element>
void run_stage(stage::encode, launch_list<Executor, Codec, Element>& launches)
{
  launch_product<false>(launches);
}

template <class Executor, is_low_rank Codec, class Element>
void run_stage(stage::receive, launch_list<Executor, Codec, Element>& launches)
{
  auto const& blocks = launches.plan().factor_ends().first_block;
  launches(receive_all{}, agrees<Codec> ? blocks[1] : maximum(blocks[0], blocks[1]));
}

template <class Executor, is_low_rank Codec, class Element>
void run_stage(stage::decode, launch_list<Executor, Codec, Element>& launches)
{
  launches(rebuild_all{}, launches.plan().factor_ends().first_rows * rebuild_splits);
}

//! Reduced factor to warm start, and the next step.
template <class Executor, is_low_rank Codec, class Element>
void run_stage(stage::finish, launch_list<Executor, Codec, Element>& launches)
{
  launches(keep_all_warm{}, launches.plan().chunks());
  launches(finish_kernel{}, 1);
}

}  // namespace tersum::inline v0::detail
