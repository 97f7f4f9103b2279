// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of device/orthogonalize.hpp.

#include <tersum/config.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/lowrank/detail/block_factor.hpp>
#include <tersum/lowrank/detail/cpu_factor.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

//! @tparam Rank  At least the number of columns of the factor.
template <class Orthogonalizer, int Rank>
struct orthogonalize_kernel {
  static constexpr int threads = factor_threads;
  static constexpr int shared  = block_factor<int, Rank>::shared;

  float* factor;
  std::uint64_t length;
  int columns;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    float* const own = factor + ctx.block_rank() * (static_cast<unsigned>(columns) * length);
    block_factor<Context, Rank> mine{ctx, own, length, columns};
    Orthogonalizer::orthogonalize(mine);
  }
};

template <class Orthogonalizer>
struct orthogonalize_work {
  float* factors;
  std::uint64_t length;
  int columns;
  std::uint64_t count;

  [[nodiscard]] status on_host(int threads, instruction_set set) const
  {
    parallel_for(threads, count, [&](std::uint64_t number) {
      float* const own = factors + number * static_cast<unsigned>(columns) * length;
      cpu_factor mine{set, own, length, columns};
      Orthogonalizer::orthogonalize(mine);
    });
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    // Few columns need little shared memory, and take several blocks of 64 terms at once.
    if (columns <= 4) { return launch<4>(exec); }
    return columns <= 16 ? launch<16>(exec) : launch<max_rank>(exec);
  }

 private:
  template <int Rank, class Executor>
  [[nodiscard]] status launch(Executor const& exec) const
  {
    return exec.run(orthogonalize_kernel<Orthogonalizer, Rank>{factors, length, columns}, count);
  }
};

}  // namespace detail

template <executor Executor, orthogonalizer Orthogonalizer>
status orthogonalize(Executor const& exec,
                     Orthogonalizer const&,
                     std::span<float> factors,
                     int columns,
                     std::size_t count)
{
  bool const in_range = columns >= 1 && columns <= max_rank;
  auto const each     = static_cast<std::size_t>(in_range ? columns : 1);
  bool const some     = count >= 1 && count <= (std::size_t{1} << 31) - 1;
  auto const divisor  = some ? each * count : 1;
  status const s =
    detail::argument_check{}
      .require(in_range, "columns must be between 1 and max_rank")
      .require(some, "count must be between 1 and 2^31 - 1")
      .require(factors.size() % divisor == 0, "factors have not as many elements in each column")
      .address(factors, alignof(float), "factors is a null pointer, or not aligned to its elements")
      .result();
  if (!s.ok()) { return s; }
  std::uint64_t const length = factors.size() / divisor;
  return detail::perform(
    exec, detail::orthogonalize_work<Orthogonalizer>{factors.data(), length, columns, count});
}

}  // namespace tersum::inline v0
