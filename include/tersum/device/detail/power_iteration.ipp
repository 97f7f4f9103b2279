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
#include <tersum/lowrank/detail/cpu_factor.hpp>
#include <tersum/lowrank/matrix_record.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

namespace detail {

//! @brief Products of several matrices with their factors, passed by value so that no host memory has to outlive the call.
template <class Element>
struct product_list {
  static constexpr std::size_t capacity = 32;

  struct item {
    Element const* values;
    matrix_product<float> product;
    std::uint64_t first_block;    // blocks of 64 before
    std::uint64_t first_product;  // thread blocks before
  };

  item items[capacity];
  int count;
  std::uint32_t rank;      // the largest
  std::uint64_t blocks;    // of 64
  std::uint64_t products;  // thread blocks
  std::uint64_t sums;      // of slices, floats

  //! @brief The products of matrices with their right factors, if of rows, or with the left ones. No more than a list has room for.
  //! @param divides   Whether long matrices are divided.
  //! @param partials  Where the sums of their slices lie; null if nothing will be multiplied.
  [[nodiscard]] static constexpr product_list of(std::span<factored_matrix<Element> const> batch,
                                                 bool of_rows,
                                                 bool divides,
                                                 float* partials) noexcept
  {
    product_list list{};
    slice_placement places{0};
    for (auto const& one : batch) { places.elements += one.matrix.rows * one.matrix.columns; }
    for (auto const& [matrix, rank, left, right] : batch) {
      item& to         = list.items[list.count++];
      to.values        = matrix.values;
      to.first_block   = list.blocks;
      to.first_product = list.products;
      auto& p          = to.product;
      p.from           = of_rows ? right.data() : left.data();
      p.to             = of_rows ? left.data() : right.data();
      p.rows           = matrix.rows;
      p.columns        = matrix.columns;
      p.length         = of_rows ? matrix.rows : matrix.columns;
      p.rank           = static_cast<std::uint32_t>(rank);
      p.of_rows        = of_rows;
      p.sums           = p.to;
      p.slices         = product_slices::of(p.length, of_rows ? matrix.columns : matrix.rows);
      p.partials       = partials;
      if (divides) { p.first_partial = places.place(p.slices, p.length, p.rank); }
      list.blocks += p.blocks();
      list.products += p.blocks() * (p.is_divided() ? p.slices.count() : 1);
      list.rank = maximum(list.rank, p.rank);
    }
    list.sums = places.sums;
    return list;
  }

  //! The last item with item.*first <= number.
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_HOST_DEVICE item const& find(std::uint64_t number,
                                                    std::uint64_t item::*first) const noexcept
  {
    int i = 0;
    while (i + 1 < count && items[i + 1].*first <= number) { ++i; }
    return items[i];
  }
};

//! One block for 64 rows or columns, and for each slice where a matrix is divided.
//! @tparam Rank  No factor has more columns.
template <int Rank, class Element>
struct product_kernel {
  static constexpr int threads = product_threads;
  static constexpr int shared  = block_product<Rank, int, int>::shared;

  product_list<Element> list;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    std::uint64_t const number = ctx.block_rank();
    auto const& one            = list.find(number, &product_list<Element>::item::first_product);
    auto const load            = [&one](Context const& on, std::uint64_t at, int n, float(&v)[8]) {
      load_some(on, one.values + at, n, v);
    };
    multiply_part<Rank>(ctx, load, one.product, number - one.first_product);
  }
};

//! @brief Adds the slices of divided matrices. For 64 rows or columns there are as many blocks as two columns each take.
template <class Element>
struct add_slices_kernel {
  static constexpr int threads = product_threads;
  static constexpr int shared  = 0;

  product_list<Element> list;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    unsigned const pairs       = (list.rank + 1) / 2;
    std::uint64_t const number = ctx.block_rank() / pairs;
    auto const& one            = list.find(number, &product_list<Element>::item::first_block);
    if (!one.product.is_divided()) { return; }
    add_part(
      ctx, one.product, number - one.first_block, static_cast<unsigned>(ctx.block_rank() % pairs));
  }
};

template <class Element>
[[nodiscard]] status check_product(factored_matrix<Element> const& of,
                                   std::span<std::byte const> workspace)
{
  auto const& [matrix, rank, left, right] = of;
  bool const in_range                     = rank >= 1 && rank <= max_rank;
  auto const each                         = static_cast<std::uint64_t>(in_range ? rank : 1);
  std::span<Element const> const values{matrix.values, matrix.rows * matrix.columns};
  return argument_check{}
    .require(in_range, "rank must be between 1 and max_rank")
    .require(left.size() == each * matrix.rows, "left has not rank columns of matrix.rows elements")
    .require(right.size() == each * matrix.columns,
             "right has not rank columns of matrix.columns elements")
    .address(values, alignof(Element), "matrix is a null pointer, or not aligned to its elements")
    .address(left, alignof(float), "left is a null pointer, or not aligned to its elements")
    .address(right, alignof(float), "right is a null pointer, or not aligned to its elements")
    .address(workspace, alignof(float), "workspace is a null pointer, or not aligned to floats")
    .require(are_disjoint(left, right), "left overlaps right")
    .require(are_disjoint(values, left) && are_disjoint(values, right), "a factor overlaps matrix")
    .require(are_disjoint(workspace, left) && are_disjoint(workspace, right) &&
               are_disjoint(workspace, values),
             "workspace overlaps another array")
    .result();
}

//! @brief Checks a list, then calls body(some) for as many matrices at a time as a launch takes, up to the first error.
template <class Element, class Body>
[[nodiscard]] status for_each_list(std::span<factored_matrix<Element> const> batch,
                                   std::span<std::byte const> workspace,
                                   Body const& body)
{
  constexpr std::size_t at_once = product_list<Element>::capacity;
  for (auto const& one : batch) {
    if (status const s = check_product(one, workspace); !s.ok()) { return s; }
  }
  if (!workspace.empty() && workspace.size() < product_workspace_bytes(batch)) {
    return {error_code::invalid_argument, "workspace is smaller than product_workspace_bytes"};
  }
  for (std::size_t begin = 0; begin < batch.size(); begin += at_once) {
    status const s = body(batch.subspan(begin, minimum(at_once, batch.size() - begin)));
    if (!s.ok()) { return s; }
  }
  return {};
}

//! @brief The product of each matrix with its right factor, if of rows, or with the left one. No more than a list has room for.
//! @param workspace  Empty, or as many bytes as all need.
template <class Executor, class Element>
[[nodiscard]] status multiply_matrices(Executor const& exec,
                                       std::span<factored_matrix<Element> const> batch,
                                       bool of_rows,
                                       std::span<std::byte> workspace)
{
  auto* const partials = reinterpret_cast<float*>(workspace.data());
  using products       = product_list<Element>;
  auto const list      = products::of(batch, of_rows, !workspace.empty(), partials);
  return perform(
    exec,
    [&](int threads, auto set) {
      parallel_for(threads, list.blocks, [&](std::uint64_t number) {
        auto const& one = list.find(number, &products::item::first_block);
        auto const load = [set, &one](std::uint64_t begin, int n, float* to) {
          (void)convert_values(set, one.values + begin, to, 1.0f, static_cast<std::size_t>(n));
        };
        multiply_part(set, load, one.product, (number - one.first_block) * 64);
      });
    },
    [&](auto const& on) -> status {
      status const s = list.rank <= 8 ? on.run(product_kernel<8, Element>{list}, list.products)
                       : list.rank <= 16
                         ? on.run(product_kernel<16, Element>{list}, list.products)
                         : on.run(product_kernel<max_rank, Element>{list}, list.products);
      if (!s.ok() || list.sums == 0) { return s; }
      return on.run(add_slices_kernel<Element>{list}, list.blocks * ((list.rank + 1) / 2));
    });
}

}  // namespace detail

template <gradient_element Element>
constexpr std::size_t product_workspace_bytes(
  std::span<factored_matrix<Element> const> batch) noexcept
{
  using list         = detail::product_list<Element>;
  std::uint64_t most = 0;
  for (std::size_t begin = 0; begin < batch.size(); begin += list::capacity) {
    auto const some = batch.subspan(begin, detail::minimum(list::capacity, batch.size() - begin));
    for (bool const of_rows : {true, false}) {
      most = detail::maximum(most, list::of(some, of_rows, true, nullptr).sums);
    }
  }
  return most * sizeof(float);
}

template <executor Executor, gradient_element Element>
status left_factors(Executor const& exec,
                    std::span<factored_matrix<Element> const> batch,
                    std::span<std::byte> workspace)
{
  return detail::for_each_list(batch, workspace, [&](auto some) {
    return detail::multiply_matrices(exec, some, true, workspace);
  });
}

template <executor Executor, gradient_element Element>
status right_factors(Executor const& exec,
                     std::span<factored_matrix<Element> const> batch,
                     std::span<std::byte> workspace)
{
  return detail::for_each_list(batch, workspace, [&](auto some) {
    return detail::multiply_matrices(exec, some, false, workspace);
  });
}

template <executor Executor, orthogonalizer Orthogonalizer, gradient_element Element>
status power_iteration(Executor const& exec,
                       Orthogonalizer const& orthogonalizer,
                       std::span<factored_matrix<Element> const> batch,
                       std::span<std::byte> workspace)
{
  return detail::for_each_list(batch, workspace, [&](auto some) {
    factor_view left[detail::product_list<Element>::capacity];
    for (std::size_t i = 0; i < some.size(); ++i) { left[i] = {some[i].left, some[i].rank}; }
    status s = detail::multiply_matrices(exec, some, true, workspace);
    if (s.ok()) { s = orthogonalize(exec, orthogonalizer, std::span{left}.first(some.size())); }
    return s.ok() ? detail::multiply_matrices(exec, some, false, workspace) : s;
  });
}

}  // namespace tersum::inline v0
