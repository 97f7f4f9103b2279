// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The reductions of tersum as types and operations of MPI, for `mpi_transport` and for calls of your own.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/reduce/detail/reduce_shares.hpp>
#include <tersum/reduce/native.hpp>

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

//! Whether MPI has an operation built in: sums and maxima of float and of integers.
template <class Op>
inline constexpr bool mpi_knows = std::is_arithmetic_v<typename Op::element>&& Op::native;

//! @brief MPI's own type for an element, or MPI_DATATYPE_NULL: MPI has no half and no bfloat16.
template <class Element>
[[nodiscard]] MPI_Datatype mpi_native_type() noexcept
{
  if (std::same_as<Element, float>) { return MPI_FLOAT; }
  if (std::same_as<Element, std::int8_t>) { return MPI_INT8_T; }
  if (std::same_as<Element, std::uint8_t>) { return MPI_UINT8_T; }
  if (std::same_as<Element, std::int16_t>) { return MPI_INT16_T; }
  if (std::same_as<Element, std::int32_t>) { return MPI_INT32_T; }
  if (std::same_as<Element, std::uint32_t>) { return MPI_UINT32_T; }
  if (std::same_as<Element, std::uint64_t>) { return MPI_UINT64_T; }
  return MPI_DATATYPE_NULL;
}

//! @brief An MPI type of one element of that many bytes, which MPI never cuts. Freed with the object.
class mpi_element_type {
 public:
  explicit mpi_element_type(std::size_t bytes) noexcept
  {
    error_ = MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type_);
    if (error_ == MPI_SUCCESS) { error_ = MPI_Type_commit(&type_); }
  }
  mpi_element_type(mpi_element_type const&)            = delete;
  mpi_element_type& operator=(mpi_element_type const&) = delete;
  ~mpi_element_type()
  {
    if (type_ != MPI_DATATYPE_NULL) { MPI_Type_free(&type_); }
  }

  [[nodiscard]] MPI_Datatype get() const noexcept { return type_; }
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  int error_         = MPI_SUCCESS;
};

//! @brief A reduction of tersum as an operation of MPI, for arrays of `mpi_element_type(sizeof(Op::element))`.
//!
//! It is declared commutative: MPI may choose the order and cut arrays, but never within an element. Freed with the object.
template <reduce_op Op>
class mpi_op {
  static_assert(!has_combine_at<Op>,
                "tersum: MPI's operations see no positions: reduce the parts of this payload one "
                "by one (for_each_part), or use schedule::direct");

 public:
  mpi_op() noexcept { error_ = MPI_Op_create(&combine, 1, &op_); }
  mpi_op(mpi_op const&)            = delete;
  mpi_op& operator=(mpi_op const&) = delete;
  ~mpi_op()
  {
    if (op_ != MPI_OP_NULL) { MPI_Op_free(&op_); }
  }

  [[nodiscard]] MPI_Op get() const noexcept { return op_; }
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  static void combine(void* in, void* inout, int* length, MPI_Datatype*)
  {
    detail::with_subnormals const scope;
    using element  = typename Op::element;
    auto* const to = static_cast<element*>(inout);
    detail::reduce_array(1,
                         best_instruction_set(),
                         Op{},
                         to,
                         static_cast<element const*>(in),
                         to,
                         static_cast<std::size_t>(*length));
  }

  MPI_Op op_ = MPI_OP_NULL;
  int error_ = MPI_SUCCESS;
};

}  // namespace tersum::inline v0
