// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of device/power_iteration.hpp.

#include <tersum/block/detail/eight_values.hpp>
#include <tersum/config.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/device/orthogonalize.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/lowrank/detail/block_product.hpp>
#include <tersum/lowrank/detail/cpu_products.hpp>

namespace tersum::inline v0 {

namespace detail {

//! Loads neighbours of one row of a matrix in memory.
template <class Element>
struct matrix_loader {
  Element const* values;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx, std::uint64_t at, int count, float (&v)[8]) const
  {
    load_some(ctx, values + at, count, v);
  }
};

//! One block for 64 rows or columns. @tparam Rank  The factor has not more columns.
template <int Rank, class Element>
struct product_kernel {
  using loader                 = matrix_loader<Element>;
  static constexpr int threads = product_threads;
  static constexpr int shared  = block_product<Rank, loader, int>::shared;

  loader matrix;
  product_shape shape;
  float const* from;
  float* to;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    block_product<Rank, loader, Context>{
      ctx, matrix, shape, static_cast<std::uint64_t>(ctx.block_rank()) * 64}
      .run(from, to);
  }
};

template <class Element>
struct product_work {
  Element const* values;
  product_shape shape;
  float const* from;
  float* to;

  [[nodiscard]] std::uint64_t blocks() const { return divide_up(shape.length, 64); }

  [[nodiscard]] status on_host(int threads, instruction_set set) const
  {
    auto const load = [this](std::uint64_t begin, int count, float* to) {
      for (int i = 0; i < count; ++i) {
        to[i] = to_float(values[begin + static_cast<unsigned>(i)]);
      }
    };
    parallel_for(threads, blocks(), [&](std::uint64_t number) {
      cpu_product<decltype(load)>{set,
                                  load,
                                  shape.rows,
                                  shape.columns,
                                  static_cast<int>(shape.rank),
                                  shape.of_rows,
                                  number * 64}
        .run(from, to);
    });
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    if (shape.rank <= 8) { return launch<8>(exec); }
    return shape.rank <= 16 ? launch<16>(exec) : launch<max_rank>(exec);
  }

 private:
  template <int Rank, class Executor>
  [[nodiscard]] status launch(Executor const& exec) const
  {
    return exec.run(product_kernel<Rank, Element>{{values}, shape, from, to}, blocks());
  }
};

template <class Element, class Left, class Right>
[[nodiscard]] status check_product(matrix_view<Element> const& matrix,
                                   int rank,
                                   std::span<Left> left,
                                   std::span<Right> right)
{
  bool const in_range = rank >= 1 && rank <= max_rank;
  auto const each     = static_cast<std::uint64_t>(in_range ? rank : 1);
  std::span<Element const> const values{matrix.values, matrix.rows * matrix.columns};
  return argument_check{}
    .require(in_range, "rank must be between 1 and max_rank")
    .require(left.size() == each * matrix.rows, "left has not rank columns of matrix.rows elements")
    .require(right.size() == each * matrix.columns,
             "right has not rank columns of matrix.columns elements")
    .address(values, alignof(Element), "matrix is a null pointer, or not aligned to its elements")
    .address(left, alignof(float), "left is a null pointer, or not aligned to its elements")
    .address(right, alignof(float), "right is a null pointer, or not aligned to its elements")
    .require(are_disjoint(left, right), "left overlaps right")
    .require(are_disjoint(values, left) && are_disjoint(values, right), "a factor overlaps matrix")
    .result();
}

template <class Executor, class Element>
[[nodiscard]] status multiply_matrix(Executor const& exec,
                                     matrix_view<Element> const& matrix,
                                     int rank,
                                     bool of_rows,
                                     float const* from,
                                     float* to)
{
  product_shape const shape{.offset  = 0,
                            .rows    = matrix.rows,
                            .columns = matrix.columns,
                            .length  = of_rows ? matrix.rows : matrix.columns,
                            .rank    = static_cast<std::uint32_t>(rank),
                            .of_rows = of_rows};
  return perform(exec, product_work<Element>{matrix.values, shape, from, to});
}

}  // namespace detail

template <executor Executor, gradient_element Element>
status left_factor(Executor const& exec,
                   matrix_view<Element> const& matrix,
                   int rank,
                   std::span<float const> right,
                   std::span<float> left)
{
  if (status const s = detail::check_product(matrix, rank, left, right); !s.ok()) { return s; }
  return detail::multiply_matrix(exec, matrix, rank, true, right.data(), left.data());
}

template <executor Executor, gradient_element Element>
status right_factor(Executor const& exec,
                    matrix_view<Element> const& matrix,
                    int rank,
                    std::span<float const> left,
                    std::span<float> right)
{
  if (status const s = detail::check_product(matrix, rank, left, right); !s.ok()) { return s; }
  return detail::multiply_matrix(exec, matrix, rank, false, left.data(), right.data());
}

template <executor Executor, orthogonalizer Orthogonalizer, gradient_element Element>
status power_iteration(Executor const& exec,
                       Orthogonalizer const& orthogonalizer,
                       matrix_view<Element> const& matrix,
                       int rank,
                       std::span<float> left,
                       std::span<float> right)
{
  if (status const s = left_factor(exec, matrix, rank, right, left); !s.ok()) { return s; }
  if (status const s = orthogonalize(exec, orthogonalizer, left, rank); !s.ok()) { return s; }
  return right_factor(exec, matrix, rank, left, right);
}

}  // namespace tersum::inline v0
