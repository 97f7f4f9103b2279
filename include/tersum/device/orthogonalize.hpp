// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The columns of tall factors made orthonormal.

#pragma once

#include <tersum/config.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/lowrank/detail/block_factor.hpp>
#include <tersum/lowrank/detail/cpu_factor.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief A factor: `columns` columns one after the other, of values.size() / columns floats.
struct factor_view {
  std::span<float> values;
  int columns;  //!< 1 to `max_rank`.
};

namespace detail {

//! Some factors, passed by value so that no host memory has to outlive the call.
struct factor_list {
  static constexpr std::size_t capacity = 64;

  struct entry {
    float* values;
    std::uint64_t length;
    int columns;
  };

  entry entries[capacity];
};

//! One block a factor. @tparam Rank  No factor has more columns.
template <class Orthogonalizer, int Rank>
struct orthogonalize_kernel {
  static constexpr int threads = factor_threads;
  static constexpr int shared  = block_factor<int, Rank>::shared;

  factor_list factors;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    auto const f = factors.entries[ctx.block_rank()];
    block_factor<Context, Rank> mine{ctx, f.values, f.length, f.columns};
    Orthogonalizer::orthogonalize(mine);
  }
};

[[nodiscard]] inline status check_factor(factor_view const& factor)
{
  bool const in_range = factor.columns >= 1 && factor.columns <= max_rank;
  return argument_check{}
    .require(in_range, "columns must be between 1 and max_rank")
    .require(factor.values.size() % static_cast<unsigned>(in_range ? factor.columns : 1) == 0,
             "factors have not as many elements in each column")
    .address(
      factor.values, alignof(float), "factors is a null pointer, or not aligned to its elements")
    .result();
}

}  // namespace detail

//! @brief Makes the columns of factors of any sizes orthonormal in place; they keep their span, and dependent ones become zero.
//!
//! *Reads and writes* the factors, which lie in the executor's memory, aligned to their elements, and are apart, which is not
//! checked. The list itself lies in the host's memory and is not needed after the call. *Needs* no workspace. *Errors*: a number
//! of columns out of range, or that does not divide a factor's size; a null or misaligned address.
//!
//! The columns are those that `low_rank_codec` makes of the same factor. Every executor adds in the same order, in double. If a value of a
//! factor is not finite, the columns of this factor are not finite either. Enqueued on the executor: a launch of a block a factor for up to
//! 64 factors, one more for each further 64; a thread of the CPU takes a factor at a time. Does not synchronize.
//! @param orthogonalizer  `robust_cholesky_qr2`, `gram_schmidt`, or one of your own.
//!
//! @par Example
//! @snippet tests/device/low_rank_cases.hpp orthogonalize
template <executor Executor, orthogonalizer Orthogonalizer>
[[nodiscard]] status orthogonalize(Executor const& exec,
                                   [[maybe_unused]] Orthogonalizer const& orthogonalizer,
                                   std::span<factor_view const> factors)
{
  using namespace detail;
  for (factor_view const& f : factors) {
    if (status const s = check_factor(f); !s.ok()) { return s; }
  }
  for (std::size_t begin = 0; begin < factors.size(); begin += factor_list::capacity) {
    factor_list some{};
    std::uint64_t count = 0;
    int most            = 0;  // columns
    for (factor_view const& f :
         factors.subspan(begin, std::min(factor_list::capacity, factors.size() - begin))) {
      auto const columns    = static_cast<unsigned>(f.columns);
      some.entries[count++] = {f.values.data(), f.values.size() / columns, f.columns};
      most                  = std::max(most, f.columns);
    }
    status const s = perform(
      exec,
      [&](int threads, auto set) {
        parallel_for(threads, count, [&](std::uint64_t i) {
          auto const& f = some.entries[i];
          cpu_factor mine{set, f.values, f.length, f.columns};
          Orthogonalizer::orthogonalize(mine);
        });
      },
      [&](auto const& on) {
        // Few columns need little shared memory, and take several blocks of 64 terms at once.
        return most <= 4    ? on.run(orthogonalize_kernel<Orthogonalizer, 4>{some}, count)
               : most <= 16 ? on.run(orthogonalize_kernel<Orthogonalizer, 16>{some}, count)
                            : on.run(orthogonalize_kernel<Orthogonalizer, max_rank>{some}, count);
      });
    if (!s.ok()) { return s; }
  }
  return {};
}

}  // namespace tersum::inline v0
