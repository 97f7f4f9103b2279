// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The products of a bucket, described for a grouped matrix multiplication of another library, such as cuBLAS: sizes on the
//! host, pointers on the device.

#pragma once

#include <tersum/config.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! Whether an exchange can leave its products to another library: the host must know the turn, all elements must be floats, and
//! feedback must add what it kept as it is.
template <class Codec, class Element>
inline constexpr bool has_grouped_products = false;
template <class LowRank, class Feedback>
inline constexpr bool
  has_grouped_products<low_rank_codec<LowRank, float, low_rank_schedule::paired, Feedback>, float> =
    !Feedback::enabled || (has_adds_lost<Feedback> && !has_kept_weight<Feedback>);

//! @brief Some groups of products C = op(A) B of column-major matrices. The products of a group have equal sizes.
//!
//! A is a matrix of the bucket, which lies transposed in memory: its leading dimension is k where it is `transposed`
//! and m where not. Those of B and C are k and m.
struct product_groups {
  static constexpr int capacity = 64;

  bool transposed;
  std::uint64_t first;  //!< Number of the first matrix.
  int count;
  std::int64_t m[capacity], n[capacity], k[capacity], size[capacity];
};

//! @brief Calls visit(groups) for all matrices of a turn, in order, up to the first error.
template <class Codec, class Visitor>
[[nodiscard]] status for_product_groups(plan<Codec> const& plan, int turn, Visitor const& visit)
{
  status outcome;
  product_groups groups;
  groups.transposed  = turn == 0;
  groups.first       = 0;
  groups.count       = 0;
  std::uint64_t seen = 0;
  auto const flush   = [&] {
    if (outcome.ok() && groups.count > 0) { outcome = visit(groups); }
    groups.first = seen;
    groups.count = 0;
  };
  plan.for_each_matrix([&](matrix_record const& matrix) {
    auto const m   = static_cast<std::int64_t>(matrix.length(turn));
    auto const k   = static_cast<std::int64_t>(matrix.length(1 - turn));
    auto const n   = static_cast<std::int64_t>(matrix.rank);
    int const last = groups.count - 1;
    if (last >= 0 && groups.m[last] == m && groups.k[last] == k && groups.n[last] == n) {
      ++groups.size[last];
    } else {
      if (groups.count == product_groups::capacity) { flush(); }
      int const at    = groups.count++;
      groups.m[at]    = m;
      groups.n[at]    = n;
      groups.k[at]    = k;
      groups.size[at] = 1;
    }
    ++seen;
  });
  flush();
  return outcome;
}

//! @brief Where the matrices of the products lie, arrays in memory of the device.
struct product_pointers {
  float const** gradient;  //!< A.
  float const** residual;  //!< Of the same shape; added to A.
  float const** from;      //!< B.
  float** to;              //!< C.

  static constexpr std::size_t bytes = 4 * sizeof(float*);  //!< For one matrix.

  product_pointers(std::byte* memory, std::uint64_t matrices)
    : gradient(reinterpret_cast<float const**>(memory)), residual(gradient + matrices),
      from(residual + matrices),
      to(reinterpret_cast<float**>(memory + 3 * matrices * sizeof(float*)))
  {
  }
};

//! Fills the table for P when `First`, for Q otherwise. One thread a matrix.
template <bool First>
struct write_pointers : kernel_of_threads<128, 8> {
  product_pointers table;

  template <class Context, class Codec>
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, float> const& args) const
  {
    constexpr int turn    = First ? 0 : 1;
    std::uint64_t const i = ctx.block_rank() * ctx.block_threads() + ctx.thread_rank();
    if (i >= args.chunks) { return; }
    matrix_record const& m = args.table[i];
    table.gradient[i]      = args.gradient + m.offset;
    table.residual[i]      = args.residual + m.offset;
    table.from[i]          = (First ? args.parts.warm : args.parts.factor[0]) + m.slot[1 - turn];
    table.to[i]            = args.parts.wire[turn] + m.slot[turn];
  }
};

//! @brief An executor that leaves the products of a plan to multiply(groups, matrices, adds): op(A) B with A of the table's
//! `matrices`, added to C if `adds`.
template <class Executor, class Codec, class Multiply>
struct grouped_executor : Executor {
  plan<Codec> const& what;
  product_pointers table;
  Multiply multiply;

  using Executor::run;

  template <bool First>
  [[nodiscard]] status run(multiply_all<First> const&,
                           std::uint64_t,
                           exchange_args<Codec, float> const& args) const
  {
    using write                = write_pointers<First>;
    constexpr auto threads     = static_cast<std::uint64_t>(write::template threads<Codec>);
    std::uint64_t const blocks = (what.chunks() + threads - 1) / threads;
    if (status const s = run(write{{}, table}, blocks, args); !s.ok()) { return s; }
    return for_product_groups(what, First ? 0 : 1, [&](product_groups const& groups) {
      status const s = multiply(groups, table.gradient, false);
      return s.ok() && feeds_back<Codec> ? multiply(groups, table.residual, true) : s;
    });
  }

  // There are no sums of slices.
  template <bool First>
  [[nodiscard]] status run(add_all<First> const&,
                           std::uint64_t,
                           exchange_args<Codec, float> const&) const
  {
    return {};
  }
};

}  // namespace tersum::inline v0::detail
