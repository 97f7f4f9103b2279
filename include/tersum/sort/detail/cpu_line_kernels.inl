// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rows of matrices for one instruction set. Included once for each by cpu_line_kernels.hpp, after vectors.inl. Compilers make
//! vectors of these loops.

template <class Element>
TERSUM_TARGET inline std::int32_t raise_peaks(Element const* row,
                                              std::int32_t* columns,
                                              std::size_t count)
{
  std::int32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto const bits = static_cast<std::int32_t>(magnitude_bits(row[i]));
    most            = bits > most ? bits : most;
    columns[i]      = bits > columns[i] ? bits : columns[i];
  }
  return most;
}

template <class Element>
TERSUM_TARGET inline void gather_columns(float* __restrict to,
                                         Element const* __restrict row,
                                         std::uint32_t const* columns,
                                         int count)
{
  for (int i = 0; i < count; ++i) { to[i] = to_float(row[static_cast<std::int32_t>(columns[i])]); }
}

template <class Element>
TERSUM_TARGET inline void scatter_columns(Element* __restrict row,
                                          float const* __restrict from,
                                          std::uint32_t const* columns,
                                          int count)
{
  for (int i = 0; i < count; ++i) {
    row[static_cast<std::int32_t>(columns[i])] = finite_from_float<Element>(from[i]);
  }
}
