// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rows of matrices on the CPU, compiled for each instruction set from one source, and the choice among them.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/config.hpp>
#include <tersum/sort/line_key.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

#define TERSUM_SIMD_SOURCE <tersum/sort/detail/cpu_line_kernels.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

//! @brief Raises the peaks of columns by a row, and returns that of the row.
template <class Element>
[[nodiscard]] std::int32_t raise_peaks(instruction_set set,
                                       Element const* row,
                                       std::int32_t* columns,
                                       std::size_t count)
{
  TERSUM_DISPATCH(set, true, raise_peaks(row, columns, count));
}

//! @brief to[i] = row[columns[i]]
template <class Element>
void gather_columns(
  instruction_set set, float* to, Element const* row, std::uint32_t const* columns, int count)
{
  TERSUM_DISPATCH(set, true, gather_columns(to, row, columns, count));
}

//! @brief row[columns[i]] = from[i], rounded to the nearest element that is finite.
template <class Element>
void scatter_columns(
  instruction_set set, Element* row, float const* from, std::uint32_t const* columns, int count)
{
  TERSUM_DISPATCH(set, true, scatter_columns(row, from, columns, count));
}

#undef TERSUM_DISPATCH
#undef TERSUM_SIMD_SOURCE

}  // namespace tersum::inline v0::detail
