// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of device/orthogonalize.hpp.

#include <tersum/config.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/lowrank/detail/block_factor.hpp>
#include <tersum/lowrank/detail/cpu_factor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

namespace detail {

struct factor_entry {
  float* values;
  std::uint64_t length;
  int columns;
};

//! Factors of equal sizes, one after the other.
struct equal_factors {
  factor_entry first;

  [[nodiscard]] TERSUM_HOST_DEVICE factor_entry at(std::uint64_t i) const noexcept
  {
    auto const size = static_cast<unsigned>(first.columns) * first.length;
    return {first.values + i * size, first.length, first.columns};
  }
};

//! Factors of any sizes, passed by value so that no host memory has to outlive the call.
struct listed_factors {
  static constexpr std::size_t capacity = 64;

  factor_entry entries[capacity];

  [[nodiscard]] TERSUM_HOST_DEVICE factor_entry at(std::uint64_t i) const noexcept
  {
    return entries[i];
  }
};

//! One block a factor. @tparam Rank  No factor has more columns.
template <class Orthogonalizer, int Rank, class Factors>
struct orthogonalize_kernel {
  static constexpr int threads = factor_threads;
  static constexpr int shared  = block_factor<int, Rank>::shared;

  Factors factors;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    factor_entry const f = factors.at(ctx.block_rank());
    block_factor<Context, Rank> mine{ctx, f.values, f.length, f.columns};
    Orthogonalizer::orthogonalize(mine);
  }
};

//! Some factors on any executor, the widest of which has `most_columns`.
template <class Orthogonalizer, class Executor, class Factors>
[[nodiscard]] status orthogonalize_all(Executor const& exec,
                                       Factors const& factors,
                                       std::uint64_t count,
                                       int most_columns)
{
  return perform(
    exec,
    [&](int threads, auto set) {
      parallel_for(threads, count, [&](std::uint64_t i) {
        factor_entry const f = factors.at(i);
        cpu_factor mine{set, f.values, f.length, f.columns};
        Orthogonalizer::orthogonalize(mine);
      });
    },
    [&](auto const& on) {
      // Few columns need little shared memory, and take several blocks of 64 terms at once.
      return most_columns <= 4
               ? on.run(orthogonalize_kernel<Orthogonalizer, 4, Factors>{factors}, count)
             : most_columns <= 16
               ? on.run(orthogonalize_kernel<Orthogonalizer, 16, Factors>{factors}, count)
               : on.run(orthogonalize_kernel<Orthogonalizer, max_rank, Factors>{factors}, count);
    });
}

[[nodiscard]] inline status check_factors(std::span<float> factors, int columns, std::size_t count)
{
  bool const in_range = columns >= 1 && columns <= max_rank;
  auto const each     = static_cast<std::size_t>(in_range ? columns : 1);
  bool const some     = count >= 1 && count <= (std::size_t{1} << 31) - 1;
  return argument_check{}
    .require(in_range, "columns must be between 1 and max_rank")
    .require(some, "count must be between 1 and 2^31 - 1")
    .require(factors.size() % (some ? each * count : 1) == 0,
             "factors have not as many elements in each column")
    .address(factors, alignof(float), "factors is a null pointer, or not aligned to its elements")
    .result();
}

}  // namespace detail

template <executor Executor, orthogonalizer Orthogonalizer>
status orthogonalize(Executor const& exec,
                     Orthogonalizer const&,
                     std::span<float> factors,
                     int columns,
                     std::size_t count)
{
  if (status const s = detail::check_factors(factors, columns, count); !s.ok()) { return s; }
  std::uint64_t const length = factors.size() / (static_cast<unsigned>(columns) * count);
  detail::equal_factors const all{{factors.data(), length, columns}};
  return detail::orthogonalize_all<Orthogonalizer>(exec, all, count, columns);
}

template <executor Executor, orthogonalizer Orthogonalizer>
status orthogonalize(Executor const& exec,
                     Orthogonalizer const&,
                     std::span<factor_view const> factors)
{
  using listed = detail::listed_factors;
  for (factor_view const& f : factors) {
    if (status const s = detail::check_factors(f.values, f.columns, 1); !s.ok()) { return s; }
  }
  for (std::size_t begin = 0; begin < factors.size(); begin += listed::capacity) {
    listed some{};
    std::uint64_t count = 0;
    int most_columns    = 0;
    for (factor_view const& f :
         factors.subspan(begin, std::min(listed::capacity, factors.size() - begin))) {
      auto const columns    = static_cast<unsigned>(f.columns);
      some.entries[count++] = {f.values.data(), f.values.size() / columns, f.columns};
      most_columns          = std::max(most_columns, f.columns);
    }
    status const s = detail::orthogonalize_all<Orthogonalizer>(exec, some, count, most_columns);
    if (!s.ok()) { return s; }
  }
  return {};
}

}  // namespace tersum::inline v0
