// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of an exchange of factors and the order of their launches, the same for a device and its emulator.

#pragma once

#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/lowrank/detail/block_low_rank.hpp>
#include <tersum/lowrank/detail/block_matrix.hpp>
#include <tersum/lowrank/detail/block_products.hpp>
#include <tersum/lowrank/detail/block_rebuild.hpp>
#include <tersum/lowrank/detail/block_scales.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @name Kernels
//! @{
struct write_header : kernel_of_threads<32, &cuda_tuning::small_blocks> {
  std::uint64_t seed;
  std::uint64_t coordinates;
  std::uint64_t fingerprint;

  TERSUM_RUNS(if (ctx.thread_rank() == 0) {
    *args.header = first_header(args, seed, coordinates, 0, fingerprint);
    args.bypassed.first_gain();
  })
};

struct write_records : table_batch<tensor_record>,
                       kernel_of_threads<32, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(write_table(ctx, *this, args.records))
};

struct write_matrices : table_batch<matrix_record>,
                        kernel_of_threads<32, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(write_table(ctx, *this, args.matrices))
};

//! One block a matrix.
struct start_warm : kernel_of_threads<factor_threads, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(refresh_warm(ctx, args, args.matrices[ctx.block_rank()], 1, 0, agrees<Codec>))
};

//! `rebuild_splits` blocks for 64 rows of a matrix.
struct find_largest_scales : kernel_of_threads<product_threads, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(find_largest_scale(ctx, args))
};

//! One block for 64 elements of the columns of a factor, and for each slice where its matrix is divided: of P if `First`,
//! otherwise of the factor that the exchange sends last.
template <bool First>
struct multiply_all : kernel_of_threads<product_threads, &cuda_tuning::product_blocks> {
  template <class Codec>
  static constexpr int shared =
    (64 + (Codec::rank + 7) / 8 * 8) * product_stride* static_cast<int>(sizeof(float));

  TERSUM_RUNS(
    multiply_matrices(ctx, args, First ? 0 : turn_of(args), First ? args.warm : args.factor[0]))
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
  //! Scales that follow the mean would spill in as few registers as others have.
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int blocks = minimum(Tuning.cuda.rebuild_blocks, keeps_metric<Codec> ? 3 : 64);
  template <class Codec>
  static constexpr int shared = 2 * Codec::rank* product_stride* static_cast<int>(sizeof(float));

  TERSUM_RUNS(rebuild_matrices(ctx, args))
};

//! One block a matrix.
struct keep_all_warm : kernel_of_threads<factor_threads, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(keep_warm(ctx, args))
};

struct advance_step : kernel_of_threads<32, &cuda_tuning::small_blocks> {
  TERSUM_RUNS(if (ctx.thread_rank() == 0) { args.header->step = args.header->step + 1; })
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
  status result  = launch(write_header{{}, seed, plan.coordinates(), plan.state_fingerprint()}, 1);
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

//! The larger of the grids of the two turns, since only the device knows which turn it is.
template <class Codec>
[[nodiscard]] std::uint64_t blocks_of_turn(plan<Codec> const& plan)
{
  return agrees<Codec> ? plan.blocks(1) : maximum(plan.blocks(0), plan.blocks(1));
}

//! A product: one launch for all matrices, and a second one if some are divided into slices.
template <bool First, class Codec, class Launch>
[[nodiscard]] status launch_product(plan<Codec> const& plan, Launch const& launch)
{
  std::uint64_t blocks = 0, adders = 0;
  for (int turn = 0; turn < 2; ++turn) {
    if (agrees<Codec> && turn != (First ? 0 : 1)) { continue; }
    blocks = maximum(blocks, plan.product_blocks(turn));
    if (plan.partial_sums(turn) > 0) { adders = maximum(adders, plan.blocks(turn)); }
  }
  status const s = launch(multiply_all<First>{}, blocks);
  return s.ok() ? launch(add_all<First>{}, adders * adders_of_block<Codec>) : s;
}

//! Gradient to P, from the warm start.
template <class Codec, class Launch>
[[nodiscard]] status launch_low_rank(stage::measure, plan<Codec> const& plan, Launch const& launch)
{
  return launch_product<true>(plan, launch);
}

template <class Codec, class Launch>
[[nodiscard]] status launch_low_rank(stage::orthonormalize,
                                     plan<Codec> const& plan,
                                     Launch const& launch)
{
  return launch(orthonormalize_all{}, plan.chunks());
}

//! Gradient to Q or, when alternating, to the factor of the turn.
template <class Codec, class Launch>
[[nodiscard]] status launch_low_rank(stage::encode, plan<Codec> const& plan, Launch const& launch)
{
  return launch_product<false>(plan, launch);
}

template <class Codec, class Launch>
[[nodiscard]] status launch_low_rank(stage::decode, plan<Codec> const& plan, Launch const& launch)
{
  // All kernels that may find a value that is not finite come before the one that writes residuals.
  if (status const s = launch(receive_all{}, blocks_of_turn(plan)); !s.ok()) { return s; }
  std::uint64_t const blocks = plan.row_blocks() * rebuild_splits;
  status const result        = launch(rebuild_all{}, blocks);
  return result.ok() ? launch(keep_all_warm{}, plan.chunks()) : result;
}

template <class Codec, class Launch>
[[nodiscard]] status launch_low_rank(stage::finish, plan<Codec> const&, Launch const& launch)
{
  return launch(advance_step{}, 1);
}
//! @}

template <class Executor, class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] status run_stage(stage::initialize const& stage,
                               launch_list<Executor, Codec, Element>& launches)
{
  launches.clear_state();
  if (!launches.result().ok()) { return launches.result(); }
  return initialize_low_rank(launches.plan(), stage.seed, launches.each());
}

//! One launch, and one that clears a word for each matrix.
template <class Executor, class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] status run_stage(stage::prepare_metric,
                               launch_list<Executor, Codec, Element>& launches)
{
  launches.clear(launches.args().metric.largest, launches.plan().chunks());
  launches(find_largest_scales{}, launches.plan().row_blocks() * rebuild_splits);
  return launches.result();
}

template <class Executor, class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] status run_stage(stage::measure stage,
                               launch_list<Executor, Codec, Element>& launches)
{
  return launch_low_rank(stage, launches.plan(), launches.each());
}

template <class Executor, class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] status run_stage(stage::orthonormalize stage,
                               launch_list<Executor, Codec, Element>& launches)
{
  return launch_low_rank(stage, launches.plan(), launches.each());
}

template <class Executor, class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] status run_stage(stage::encode stage, launch_list<Executor, Codec, Element>& launches)
{
  return launch_low_rank(stage, launches.plan(), launches.each());
}

template <class Executor, class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] status run_stage(stage::decode stage, launch_list<Executor, Codec, Element>& launches)
{
  return launch_low_rank(stage, launches.plan(), launches.each());
}

template <class Executor, class Codec, class Element>
requires is_low_rank<Codec>
[[nodiscard]] status run_stage(stage::finish stage, launch_list<Executor, Codec, Element>& launches)
{
  return launch_low_rank(stage, launches.plan(), launches.each());
}

}  // namespace tersum::inline v0::detail
