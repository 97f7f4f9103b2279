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
#include <tersum/lowrank/detail/product_slices.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

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

//! One product of a list.
template <class Element>
struct product_item {
  Element const* values;
  product_shape shape;
  product_slices slices;
  float const* from;
  float* to;
  float* sums;                  // of slices, or null: the matrix is not divided
  std::uint64_t first_block;    // blocks of 64 before
  std::uint64_t first_product;  // thread blocks before

  [[nodiscard]] TERSUM_HOST_DEVICE std::uint64_t blocks() const noexcept
  {
    return (shape.length + 63) / 64;
  }
};

//! @brief Products of several matrices with their factors, passed by value so that no host memory has to outlive the call.
template <class Element>
struct product_list {
  static constexpr std::size_t capacity = 32;

  product_item<Element> items[capacity];
  int count;
  std::uint32_t rank;      // the largest
  std::uint64_t blocks;    // of 64
  std::uint64_t products;  // thread blocks
  bool divides;

  //! The last item with item.*first <= number.
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_HOST_DEVICE product_item<Element> const& find(
    std::uint64_t number, std::uint64_t product_item<Element>::*first) const noexcept
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
  using loader                 = matrix_loader<Element>;
  static constexpr int threads = product_threads;
  static constexpr int shared  = block_product<Rank, loader, int>::shared;

  product_list<Element> list;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    std::uint64_t const number = ctx.block_rank();
    auto const& item           = list.find(number, &product_item<Element>::first_product);
    std::uint64_t block = number - item.first_product, begin = 0, end = item.slices.terms;
    float *sums = item.to, *to = item.to;
    if (item.sums != nullptr) {
      // There are few enough for 32 bits.
      auto const blocks = static_cast<std::uint32_t>(item.blocks());
      auto const slice  = static_cast<std::uint32_t>(block) / blocks;
      block             = static_cast<std::uint32_t>(block) % blocks;
      begin             = std::uint64_t{slice} << item.slices.log;
      end               = minimum(end, begin + item.slices.each());
      sums              = item.sums + slice * (item.shape.rank * item.shape.length);
      to                = nullptr;
    }
    loader const load{item.values};
    block_product<Rank, loader, Context>{ctx, load, item.shape, block * 64}.run(
      item.slices, begin, end, item.from, sums, to);
  }
};

//! @brief Adds the slices of divided matrices. For 64 rows or columns there are as many blocks as two columns each take.
template <class Element>
struct add_slices_kernel {
  static constexpr int threads = product_threads;
  static constexpr int shared  = 0;

  product_list<Element> list;

  [[nodiscard]] TERSUM_HOST_DEVICE static std::uint32_t adders(std::uint32_t rank) noexcept
  {
    return (rank + 1) / 2;
  }

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    auto const parts           = adders(list.rank);
    std::uint64_t const number = ctx.block_rank() / parts;
    auto const& item           = list.find(number, &product_item<Element>::first_block);
    std::uint64_t const length = item.shape.length;
    std::uint64_t const row    = (number - item.first_block) * 64 + ctx.thread_rank() % 64;
    auto const column =
      static_cast<std::uint32_t>(ctx.block_rank()) % parts * 2 + ctx.thread_rank() / 64;
    if (item.sums == nullptr || column >= item.shape.rank || row >= length) { return; }
    std::uint64_t const at = column * length + row;
    float const sum        = add_slices(
      ctx, item.sums + at, item.shape.rank * length, static_cast<unsigned>(item.slices.count()));
    ctx.store(item.to + at, rounded_product<float, Context>(sum, 0.0f));
  }
};

template <class Element>
struct product_work {
  product_list<Element> list;

  [[nodiscard]] status on_host(int threads, instruction_set set) const
  {
    parallel_for(threads, list.blocks, [&](std::uint64_t number) {
      auto const& item = list.find(number, &product_item<Element>::first_block);
      auto const load  = [&item](std::uint64_t begin, int count, float* to) {
        for (int i = 0; i < count; ++i) {
          to[i] = to_float(item.values[begin + static_cast<unsigned>(i)]);
        }
      };
      cpu_product<decltype(load)>{set,
                                  load,
                                  item.shape.rows,
                                  item.shape.columns,
                                  static_cast<int>(item.shape.rank),
                                  item.shape.of_rows,
                                  (number - item.first_block) * 64}
        .run(item.slices, item.from, item.to);
    });
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    if (status const s = multiply(exec); !s.ok() || !list.divides) { return s; }
    using kernel = add_slices_kernel<Element>;
    return exec.run(kernel{list}, list.blocks * kernel::adders(list.rank));
  }

 private:
  template <class Executor>
  [[nodiscard]] status multiply(Executor const& exec) const
  {
    if (list.rank <= 8) { return launch<8>(exec); }
    return list.rank <= 16 ? launch<16>(exec) : launch<max_rank>(exec);
  }

  template <int Rank, class Executor>
  [[nodiscard]] status launch(Executor const& exec) const
  {
    return exec.run(product_kernel<Rank, Element>{list}, list.products);
  }
};

template <class Element, class Left, class Right>
[[nodiscard]] status check_product(matrix_view<Element> const& matrix,
                                   int rank,
                                   std::span<Left> left,
                                   std::span<Right> right,
                                   std::span<std::byte> workspace)
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
    .address(workspace, alignof(float), "workspace is a null pointer, or not aligned to floats")
    .require(are_disjoint(left, right), "left overlaps right")
    .require(are_disjoint(values, left) && are_disjoint(values, right), "a factor overlaps matrix")
    .require(are_disjoint(workspace, left) && are_disjoint(workspace, right) &&
               are_disjoint(workspace, values),
             "workspace overlaps another array")
    .result();
}

//! Where the sums of the slices of so many matrices lie.
template <class Element>
[[nodiscard]] slice_placement placement_of(std::span<factored_matrix<Element> const> batch) noexcept
{
  slice_placement sums{0};
  for (auto const& one : batch) { sums.elements += one.matrix.rows * one.matrix.columns; }
  return sums;
}

[[nodiscard]] inline status too_small_workspace()
{
  return {error_code::invalid_argument, "workspace is smaller than product_workspace_bytes"};
}

//! @brief The product of each matrix with its right factor, if of rows, or with the left one. No more than a list has room for.
//! @param workspace  Empty, or as many bytes as all need.
template <class Executor, class Element>
[[nodiscard]] status multiply_matrices(Executor const& exec,
                                       std::span<factored_matrix<Element> const> batch,
                                       bool of_rows,
                                       std::span<std::byte> workspace)
{
  product_work<Element> work{};
  auto& list           = work.list;
  slice_placement sums = placement_of(batch);
  auto* const partials = reinterpret_cast<float*>(workspace.data());
  for (auto const& one : batch) {
    std::uint64_t const rows = one.matrix.rows, columns = one.matrix.columns;
    auto& item             = list.items[list.count++];
    item.values            = one.matrix.values;
    item.shape             = {.offset  = 0,
                              .rows    = rows,
                              .columns = columns,
                              .length  = of_rows ? rows : columns,
                              .rank    = static_cast<std::uint32_t>(one.rank),
                              .of_rows = of_rows};
    item.slices            = product_slices::of(item.shape.length, of_rows ? columns : rows);
    item.from              = of_rows ? one.right.data() : one.left.data();
    item.to                = of_rows ? one.left.data() : one.right.data();
    item.first_block       = list.blocks;
    item.first_product     = list.products;
    std::uint64_t products = item.blocks();
    if (!workspace.empty()) {
      std::uint32_t const first = sums.place(item.slices, item.shape.length, item.shape.rank);
      if (first != slice_placement::undivided) {
        item.sums    = partials + first;
        list.divides = true;
        products *= item.slices.count();
      }
    }
    list.blocks += item.blocks();
    list.products += products;
    list.rank = maximum(list.rank, item.shape.rank);
  }
  if (sums.sums > workspace.size() / sizeof(float)) { return too_small_workspace(); }
  return perform(exec, work);
}

//! One matrix. What is not written may be constant.
template <class Element>
[[nodiscard]] factored_matrix<Element> factored(matrix_view<Element> const& matrix,
                                                int rank,
                                                float const* left,
                                                float const* right)
{
  auto const columns = static_cast<std::uint64_t>(rank);
  return {matrix,
          rank,
          {const_cast<float*>(left), columns * matrix.rows},
          {const_cast<float*>(right), columns * matrix.columns}};
}

template <class Element>
using matrix_batch = std::span<factored_matrix<Element> const>;

}  // namespace detail

constexpr std::size_t product_workspace_bytes(std::uint64_t rows,
                                              std::uint64_t columns,
                                              int rank) noexcept
{
  std::uint64_t most = 0;
  for (bool const of_rows : {true, false}) {
    detail::slice_placement sums{rows * columns};
    std::uint64_t const length = of_rows ? rows : columns;
    auto const slices          = detail::product_slices::of(length, of_rows ? columns : rows);
    static_cast<void>(sums.place(slices, length, static_cast<std::uint64_t>(rank)));
    most = detail::maximum(most, sums.sums);
  }
  return most * sizeof(float);
}

template <gradient_element Element>
std::size_t product_workspace_bytes(std::span<factored_matrix<Element> const> batch) noexcept
{
  constexpr std::size_t at_once = detail::product_list<Element>::capacity;
  std::uint64_t most            = 0;
  for (std::size_t begin = 0; begin < batch.size(); begin += at_once) {
    auto const some = batch.subspan(begin, detail::minimum(at_once, batch.size() - begin));
    for (bool const of_rows : {true, false}) {
      detail::slice_placement sums = detail::placement_of(some);
      for (auto const& one : some) {
        std::uint64_t const rows = one.matrix.rows, columns = one.matrix.columns;
        std::uint64_t const length = of_rows ? rows : columns;
        auto const slices          = detail::product_slices::of(length, of_rows ? columns : rows);
        static_cast<void>(sums.place(slices, length, static_cast<std::uint64_t>(one.rank)));
      }
      most = detail::maximum(most, sums.sums);
    }
  }
  return most * sizeof(float);
}

template <executor Executor, gradient_element Element>
status left_factor(Executor const& exec,
                   matrix_view<Element> const& matrix,
                   int rank,
                   std::span<float const> right,
                   std::span<float> left,
                   std::span<std::byte> workspace)
{
  if (status const s = detail::check_product(matrix, rank, left, right, workspace); !s.ok()) {
    return s;
  }
  auto const one = detail::factored(matrix, rank, left.data(), right.data());
  return detail::multiply_matrices(exec, detail::matrix_batch<Element>{&one, 1}, true, workspace);
}

template <executor Executor, gradient_element Element>
status right_factor(Executor const& exec,
                    matrix_view<Element> const& matrix,
                    int rank,
                    std::span<float const> left,
                    std::span<float> right,
                    std::span<std::byte> workspace)
{
  if (status const s = detail::check_product(matrix, rank, left, right, workspace); !s.ok()) {
    return s;
  }
  auto const one = detail::factored(matrix, rank, left.data(), right.data());
  return detail::multiply_matrices(exec, detail::matrix_batch<Element>{&one, 1}, false, workspace);
}

template <executor Executor, orthogonalizer Orthogonalizer, gradient_element Element>
status power_iteration(Executor const& exec,
                       Orthogonalizer const& orthogonalizer,
                       matrix_view<Element> const& matrix,
                       int rank,
                       std::span<float> left,
                       std::span<float> right,
                       std::span<std::byte> workspace)
{
  factored_matrix<Element> const one{matrix, rank, left, right};
  return power_iteration(exec, orthogonalizer, detail::matrix_batch<Element>{&one, 1}, workspace);
}

template <executor Executor, orthogonalizer Orthogonalizer, gradient_element Element>
status power_iteration(Executor const& exec,
                       Orthogonalizer const& orthogonalizer,
                       std::span<factored_matrix<Element> const> batch,
                       std::span<std::byte> workspace)
{
  constexpr std::size_t at_once = detail::product_list<Element>::capacity;
  for (auto const& one : batch) {
    status const s = detail::check_product(one.matrix, one.rank, one.left, one.right, workspace);
    if (!s.ok()) { return s; }
  }
  if (!workspace.empty() && workspace.size() < product_workspace_bytes(batch)) {
    return detail::too_small_workspace();
  }
  for (std::size_t begin = 0; begin < batch.size(); begin += at_once) {
    auto const some = batch.subspan(begin, detail::minimum(at_once, batch.size() - begin));
    factor_view left[at_once];
    for (std::size_t i = 0; i < some.size(); ++i) { left[i] = {some[i].left, some[i].rank}; }
    status s = detail::multiply_matrices(exec, some, true, workspace);
    if (s.ok()) { s = orthogonalize(exec, orthogonalizer, std::span{left}.first(some.size())); }
    if (s.ok()) { s = detail::multiply_matrices(exec, some, false, workspace); }
    if (!s.ok()) { return s; }
  }
  return {};
}

}  // namespace tersum::inline v0
