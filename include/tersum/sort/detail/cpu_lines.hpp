// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The largest magnitudes of rows and columns, their order, and matrices in that order, on the CPU.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/sort/detail/cpu_line_kernels.hpp>
#include <tersum/sort/detail/cpu_line_units.hpp>
#include <tersum/sort/detail/line_args.hpp>
#include <tersum/sort/line_record.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The peaks of all lines.
template <class Element>
void find_peaks(int threads, instruction_set set, line_args<Element> const& args)
{
  constexpr std::uint64_t wide = 1024, deep = 64;
  std::fill_n(args.lines, args.totals.lines, 0u);
  for (line_record const* r = args.records; r != args.records + args.totals.tensors; ++r) {
    if (r->sorted == 0) { continue; }
    std::uint32_t* const peaks = args.lines + r->first_line;
    parallel_for(threads, (r->rows + deep - 1) / deep, [&](std::uint64_t band) {
      std::uint64_t const bottom = minimum(r->rows, (band + 1) * deep);
      for (std::uint64_t left = 0; left < r->columns; left += wide) {
        std::uint64_t const width = minimum(wide, r->columns - left);
        // Magnitudes as signed words, which vectors of every instruction set compare.
        std::int32_t columns[wide] = {};
        for (std::uint64_t row = band * deep; row < bottom; ++row) {
          std::uint64_t const first = r->offset + row * r->columns + left;
          if constexpr (line_units<Element>::scaled) {
            float quotients[wide];
            host_line_access{args, *r}.read(first, quotients, width);
            raise(peaks[row], raise_peaks(set, +quotients, columns, width));
          } else {
            raise(peaks[row], raise_peaks(set, args.gradient + first, columns, width));
          }
        }
        for (std::uint64_t i = 0; i < width; ++i) { raise(peaks[r->rows + left + i], columns[i]); }
      }
    });
  }
}

//! @brief The order of some lines: descending keys, equal ones in their order.
inline void order_lines(std::uint8_t const* keys, std::uint32_t* order, std::uint64_t count)
{
  std::uint32_t places[key_values + 1] = {};
  for (std::uint64_t i = 0; i < count; ++i) { ++places[key_values - keys[i]]; }
  for (unsigned i = 0; i < key_values; ++i) { places[i + 1] += places[i]; }
  for (std::uint64_t i = 0; i < count; ++i) {
    order[places[key_values - 1 - keys[i]]++] = static_cast<std::uint32_t>(i);
  }
}

template <class Element>
void order_all_lines(int threads, line_args<Element> const& args)
{
  parallel_for(threads, 2 * args.totals.tensors, [&](std::uint64_t side) {
    line_record const& r = args.records[side / 2];
    if (r.sorted == 0) { return; }
    std::uint64_t const first = r.first_line + (side % 2 == 0 ? 0 : r.rows);
    order_lines(args.keys + first, args.lines + first, side % 2 == 0 ? r.rows : r.columns);
  });
}

//! @brief Copies matrices to their places, and all other tensors as they are.
//! @tparam Back  From their places to the gradient.
template <int Strip, bool Back, class Element>
void move_rows(int threads, instruction_set set, line_args<Element> const& args)
{
  parallel_for(threads, args.totals.blocks, [&](std::uint64_t number) {
    line_record const& r =
      record_of<&line_record::first_block>(args.records, args.totals.tensors, number);
    std::uint64_t const block = number - r.first_block;
    Element* const gradient   = args.gradient + r.offset;
    float* const sorted       = args.sorted + r.offset;
    if (r.sorted == 0) {
      std::uint64_t const first = block * line_record::block_coordinates;
      std::uint64_t const end   = minimum(r.columns, first + line_record::block_coordinates);
      for (std::uint64_t i = first; i < end; ++i) {
        if constexpr (Back) {
          gradient[i] = finite_from_float<Element>(sorted[i]);
        } else {
          sorted[i] = to_float(gradient[i]);
        }
      }
      return;
    }
    std::uint32_t const* const rows    = args.lines + r.first_line;
    std::uint32_t const* const columns = rows + r.rows;
    std::uint64_t const end            = minimum(r.rows, (block + 1) * r.block_rows());
    for (std::uint64_t row = block * r.block_rows(); row < end; ++row) {
      Element* const own = gradient + rows[row] * r.columns;
      for (std::uint64_t left = 0; left < r.columns; left += Strip) {
        std::uint64_t const width = minimum<std::uint64_t>(Strip, r.columns - left);
        float* const strip        = sorted + left * r.rows + row * width;
        if constexpr (Back) {
          scatter_columns(set, own, strip, columns + left, static_cast<int>(width));
        } else {
          gather_columns(set, strip, own, columns + left, static_cast<int>(width));
        }
      }
    }
  });
}

}  // namespace tersum::inline v0::detail
