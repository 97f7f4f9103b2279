// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Coordinates of rows and columns in the units of a metric on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/sort/detail/line_args.hpp>
#include <tersum/sort/detail/line_units.hpp>
#include <tersum/sort/line_record.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tersum::inline v0::detail {

inline void raise(std::uint32_t& peak, std::int32_t bits) noexcept
{
  std::atomic_ref<std::uint32_t> const shared{peak};
  auto const own     = static_cast<std::uint32_t>(bits);
  std::uint32_t seen = shared.load(std::memory_order_relaxed);
  while (seen < own && !shared.compare_exchange_weak(seen, own, std::memory_order_relaxed)) {}
}

//! @brief What `line_access` does on the CPU.
template <class Args>
class host_line_access {
 public:
  host_line_access(Args const& args, line_record const& record)
    : args_{args}, record_{record}, units_{units_of(host_group{}, args, record)},
      scaled_{record.rows != 0}, updates_{scaled_ && keeps && !args.header->last_was_non_finite()}
  {
  }

  //! One coordinate.
  [[nodiscard]] float read(std::uint64_t at) const
  {
    float const value = to_float(args_.gradient[at]);
    if (!scaled_) { return value; }
    return value / raised_scale(to_float(args_.scales[at]), units_.least);
  }
  //! Neighbours.
  void read(std::uint64_t at, float* to, std::uint64_t count) const
  {
    for (std::uint64_t i = 0; i < count; ++i) { to[i] = read(at + i); }
  }
  //! @param first  The scale of the next step where nothing was known.
  void write(std::uint64_t at, float value, [[maybe_unused]] float first) const
  {
    float mean = value;
    if (scaled_) {
      float const kept = to_float(args_.scales[at]);
      mean             = host_group::multiply(value, raised_scale(kept, units_.least));
      if constexpr (keeps) {
        if (updates_) {
          args_.scales[at] = next_scale(host_group{}, args_, units_, at, value, kept, first);
        }
      }
    }
    using element      = std::remove_reference_t<decltype(args_.gradient[at])>;
    args_.gradient[at] = finite_from_float<element>(mean);
  }
  //! Whether scales are to follow for the first time.
  [[nodiscard]] bool starts() const { return updates_ && units_.unknown; }

 private:
  static constexpr bool keeps = has_update<decltype(Args::metric)>;

  Args const& args_;
  line_record const& record_;
  tensor_units units_;
  bool scaled_;
  bool updates_;
};

//! @brief The largest scale of each tensor.
template <class Units>
void find_scales(int threads, instruction_set set, line_args<Units> const& args)
{
  std::fill_n(args.largest, args.totals.tensors, 0u);
  parallel_for(threads, args.totals.blocks, [&](std::uint64_t number) {
    line_record const& r =
      record_of<&line_record::first_block>(args.records, args.totals.tensors, number);
    std::uint64_t const size = r.sorted != 0 ? r.rows * r.columns : r.columns;
    std::uint64_t const each =
      r.sorted != 0 ? r.block_rows() * r.columns : line_record::block_coordinates;
    std::uint64_t const first = (number - r.first_block) * each;
    float const most = largest_of(set, args.scales + r.offset + first, minimum(each, size - first));
    raise(args.largest[&r - args.records], static_cast<std::int32_t>(float_bits(most)));
  });
}

//! @brief `move_rows` in the units of a metric.
template <int Strip, bool Back, class Units>
void move_rows_in_units(int threads, line_args<Units> const& args)
{
  parallel_for(threads, args.totals.blocks, [&](std::uint64_t number) {
    line_record const& r =
      record_of<&line_record::first_block>(args.records, args.totals.tensors, number);
    std::uint64_t const block = number - r.first_block;
    host_line_access const access{args, r};
    float* const sorted = args.sorted + r.offset;
    if (r.sorted == 0) {
      std::uint64_t const first = block * line_record::block_coordinates;
      std::uint64_t const end   = minimum(r.columns, first + line_record::block_coordinates);
      float start               = 0.0f;
      if (Back && access.starts()) {
        std::uint32_t most = 0;
        for (std::uint64_t i = first; i < end; ++i) {
          most = maximum(most, float_bits(sorted[i]) & 0x7fffffffu);
        }
        start = 0.25f * bits_float(most);
      }
      for (std::uint64_t i = first; i < end; ++i) {
        if constexpr (Back) {
          access.write(r.offset + i, sorted[i], start);
        } else {
          sorted[i] = access.read(r.offset + i);
        }
      }
      return;
    }
    std::uint32_t const* const rows    = args.lines + r.first_line;
    std::uint32_t const* const columns = rows + r.rows;
    std::uint8_t const* const keys     = args.keys + r.first_line;
    std::uint64_t const end            = minimum(r.rows, (block + 1) * r.block_rows());
    for (std::uint64_t row = block * r.block_rows(); row < end; ++row) {
      std::uint64_t const own = r.offset + rows[row] * r.columns;
      for (std::uint64_t left = 0; left < r.columns; left += Strip) {
        std::uint64_t const width = minimum<std::uint64_t>(Strip, r.columns - left);
        float* const strip        = sorted + left * r.rows + row * width;
        for (std::uint64_t i = 0; i < width; ++i) {
          std::uint32_t const column = columns[left + i];
          if constexpr (Back) {
            float const start =
              access.starts() ? first_scale_of_keys(keys[rows[row]], keys[r.rows + column]) : 0.0f;
            access.write(own + column, strip[i], start);
          } else {
            strip[i] = access.read(own + column);
          }
        }
      }
    }
  });
}

}  // namespace tersum::inline v0::detail
