// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of device/orthogonalize.hpp.

#include <tersum/config.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/lowrank/detail/block_factor.hpp>
#include <tersum/lowrank/detail/cpu_factor.hpp>

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
    block_factor<Context, Rank> mine{ctx, factor, length, columns};
    Orthogonalizer::orthogonalize(mine);
  }
};

template <class Orthogonalizer>
struct orthogonalize_work {
  float* factor;
  std::uint64_t length;
  int columns;

  [[nodiscard]] status on_host(int, instruction_set set) const
  {
    cpu_factor mine{set, factor, length, columns};
    Orthogonalizer::orthogonalize(mine);
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
    return exec.run(orthogonalize_kernel<Orthogonalizer, Rank>{factor, length, columns}, 1);
  }
};

}  // namespace detail

template <executor Executor, orthogonalizer Orthogonalizer>
status orthogonalize(Executor const& exec,
                     Orthogonalizer const&,
                     std::span<float> factor,
                     int columns)
{
  bool const in_range = columns >= 1 && columns <= max_rank;
  auto const divisor  = static_cast<std::size_t>(in_range ? columns : 1);
  status const s =
    detail::argument_check{}
      .require(in_range, "columns must be between 1 and max_rank")
      .require(factor.size() % divisor == 0, "factor has not as many elements in each column")
      .address(factor, alignof(float), "factor is a null pointer, or not aligned to its elements")
      .result();
  if (!s.ok()) { return s; }
  return detail::perform(
    exec,
    detail::orthogonalize_work<Orthogonalizer>{factor.data(), factor.size() / divisor, columns});
}

}  // namespace tersum::inline v0
