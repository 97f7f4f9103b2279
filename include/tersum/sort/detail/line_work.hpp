// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is done with the rows and columns of matrices, on every executor: work for `perform`.

#pragma once

#include <tersum/device/detail/perform.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/sort/detail/block_lines.hpp>
#include <tersum/sort/detail/cpu_lines.hpp>
#include <tersum/sort/detail/line_args.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief The keys of this rank.
template <class Element>
struct measure_lines_work {
  line_args<Element> args;

  [[nodiscard]] status on_host(int threads, instruction_set set) const
  {
    using measured = std::conditional_t<line_units<Element>::scaled, float, Element>;
    if constexpr (line_units<Element>::scaled) { find_scales(threads, set, args); }
    find_peaks(threads, set, args);
    for (std::uint64_t line = 0; line < args.totals.lines; ++line) {
      args.keys[line] = line_key<measured>(args.lines[line]);
    }
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    if constexpr (line_units<Element>::scaled) {
      if (status const s = exec.clear(args.largest, args.totals.tensors); !s.ok()) { return s; }
      if (status const s = exec.run(find_scales_kernel<Element>{{args}}, args.totals.blocks);
          !s.ok()) {
        return s;
      }
    }
    if (args.totals.lines == 0) { return {}; }
    if (status const s = exec.clear(args.lines, args.totals.lines); !s.ok()) { return s; }
    if (status const s = exec.run(find_peaks_kernel<Element>{{args}}, args.totals.tiles); !s.ok()) {
      return s;
    }
    return exec.each(make_key<Element>{args}, args.totals.lines);
  }
};

//! Rows to their places, or back.
template <int Strip, bool Back, class Element>
void move_on_host(int threads, instruction_set set, line_args<Element> const& args)
{
  if constexpr (line_units<Element>::scaled) {
    move_rows_in_units<Strip, Back>(threads, args);
  } else {
    move_rows<Strip, Back>(threads, set, args);
  }
}

//! @brief The order of the agreed keys, and the gradient's matrices in it.
template <int Strip, class Element>
struct sort_work {
  line_args<Element> args;

  [[nodiscard]] status on_host(int threads, instruction_set set) const
  {
    order_all_lines(threads, args);
    move_on_host<Strip, false>(threads, set, args);
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    if (args.totals.lines > 0) {
      std::uint64_t const groups = args.totals.groups;
      if (status const s = exec.run(count_keys_kernel<Element>{{args}}, groups); !s.ok()) {
        return s;
      }
      std::uint64_t const sides = 2 * args.totals.tensors;
      if (status const s = exec.run(add_counts_kernel<Element>{{args}}, sides); !s.ok()) {
        return s;
      }
      if (status const s = exec.run(place_lines_kernel<Element>{{args}}, groups); !s.ok()) {
        return s;
      }
    }
    return exec.run(move_rows_kernel<Strip, Element, false>{{args}}, args.totals.blocks);
  }
};

//! @brief The matrices back in the gradient's order.
template <int Strip, class Element>
struct restore_work {
  line_args<Element> args;

  [[nodiscard]] status on_host(int threads, instruction_set set) const
  {
    move_on_host<Strip, true>(threads, set, args);
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    return exec.run(move_rows_kernel<Strip, Element, true>{{args}}, args.totals.blocks);
  }
};

//! @brief Makes all scales of a state zeros.
template <class Scale>
struct clear_scales_work {
  Scale* scales;
  std::uint64_t count;

  [[nodiscard]] status on_host(int, instruction_set) const
  {
    std::fill_n(scales, count, Scale{});
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    return exec.clear(scales, count);
  }
};

//! @brief Writes the records that each(visit) gives.
template <class Each>
struct write_lines_work {
  line_record* records;
  Each each;

  [[nodiscard]] status on_host(int, instruction_set) const
  {
    line_record* to = records;
    each([&](line_record const& record) { *to++ = record; });
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    status result{};
    write_lines_kernel batch{{}, records, 0};
    auto const write = [&] {
      if (result.ok() && batch.count > 0) { result = exec.run(batch, 1); }
      batch.to += batch.count;
      batch.count = 0;
    };
    each([&](line_record const& record) {
      batch.records[batch.count++] = record;
      if (batch.count == write_lines_kernel::capacity) { write(); }
    });
    write();
    return result;
  }
};

template <class Each>
write_lines_work(line_record*, Each) -> write_lines_work<Each>;

}  // namespace tersum::inline v0::detail
