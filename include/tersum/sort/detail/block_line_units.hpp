// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How kernels of rows and columns read and write a coordinate: as it is, or in the units of a metric. And the largest scale of a
//! tensor.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/sort/detail/line_args.hpp>
#include <tersum/sort/detail/line_units.hpp>
#include <tersum/sort/line_key.hpp>
#include <tersum/sort/line_record.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! What all kernels of lines have in common.
template <class Element>
struct line_kernel {
  static constexpr int threads = static_cast<int>(line_record::block_threads);
  static constexpr int shared  = 0;

  line_args<Element> args;
};

//! @brief Some rows of a sorted matrix, or some coordinates of a tensor that is copied: what a block has to do.
struct row_block {
  line_record const& record;
  std::uint64_t first;  //!< Row, or coordinate.
  std::uint64_t count;

  template <class Element>
  [[nodiscard]] TERSUM_INLINE static row_block of(line_args<Element> const& args,
                                                  std::uint64_t block)
  {
    line_record const& record =
      record_of<&line_record::first_block>(args.records, args.totals.tensors, block);
    bool const sorted         = record.sorted != 0;
    std::uint64_t const each  = sorted ? record.block_rows() : line_record::block_coordinates;
    std::uint64_t const first = (block - record.first_block) * each;
    return {record, first, minimum(each, (sorted ? record.rows : record.columns) - first)};
  }
};

//! @brief Coordinates of a tensor in memory: as they are.
template <class Args>
struct line_access {
  template <class Context>
  TERSUM_INLINE line_access(Context const&, Args const&, line_record const&)
  {
  }

  template <class Context, class Element>
  [[nodiscard]] TERSUM_BODY std::uint32_t magnitude(Context const& ctx, Element const* at) const
  {
    return magnitude_bits(ctx.load(at));
  }
  template <class Context, class Element>
  [[nodiscard]] TERSUM_BODY float read(Context const& ctx, Element const* at) const
  {
    return Context::value(ctx.load(at));
  }
  template <class Context, class Element, class... Line>
  TERSUM_BODY void write(Context const& ctx, Element* at, float value, Line...) const
  {
    ctx.store(at, Context::template finite_element<Element>(value));
  }
  template <class Context>
  TERSUM_BODY void first_of_block(Context const&, Args const&, float const*, std::uint64_t) const
  {
  }
};

//! @brief Coordinates of a tensor in memory, in the units of a metric.
template <class Element, class Metric>
struct line_access<line_args<in_units<Element, Metric>>> {
  using args_type             = line_args<in_units<Element, Metric>>;
  using scale                 = typename args_type::scale;
  static constexpr bool keeps = has_update<Metric>;

  args_type const& args;
  line_record const& record;
  tensor_units units;
  bool scaled;  //!< It does not bypass.
  bool updates;
  float first = 0.0f;  //!< Of the scales of what is copied, where nothing was known.

  template <class Context>
  TERSUM_BODY line_access(Context const&, args_type const& all, line_record const& own)
    : args{all}, record{own}, units{units_of(context_arithmetic<Context>{}, all, own)},
      scaled{own.rows != 0}, updates{scaled && keeps && !all.header->last_was_non_finite()}
  {
  }

  template <class Context>
  [[nodiscard]] TERSUM_BODY float read(Context const& ctx, Element const* at) const
  {
    float const value = Context::value(ctx.load(at));
    if (!scaled) { return value; }
    float const kept = Context::value(ctx.load(args.scales + (at - args.gradient)));
    return Context::divide(value, raised_scale(kept, units.least));
  }
  template <class Context>
  [[nodiscard]] TERSUM_BODY std::uint32_t magnitude(Context const& ctx, Element const* at) const
  {
    return Context::bits(read(ctx, at)) & 0x7fffffffu;
  }
  //! @param row     Of a sorted matrix, in the order of its rows.
  //! @param column  As it lies in the gradient.
  template <class Context>
  TERSUM_BODY void write(
    Context const& ctx, Element* at, float value, std::uint64_t row, std::uint64_t column) const
  {
    float start = 0.0f;
    if constexpr (keeps) {
      if (updates && units.unknown) {
        auto const* const keys      = args.keys + record.first_line;
        std::uint32_t const own_row = ctx.load(args.lines + record.first_line + row);
        start =
          first_scale_of_keys(ctx.load(keys + own_row), ctx.load(keys + record.rows + column));
      }
    }
    store(ctx, at, value, start);
  }
  //! Of what is copied.
  template <class Context>
  TERSUM_BODY void write(Context const& ctx, Element* at, float value) const
  {
    store(ctx, at, value, first);
  }
  //! @brief The first scales of a block's coordinates that are copied: a quarter of their largest magnitude. All threads call it.
  template <class Context>
  TERSUM_BODY void first_of_block(Context const& ctx,
                                  args_type const&,
                                  float const* values,
                                  std::uint64_t count)
  {
    if constexpr (keeps) {
      if (!updates || !units.unknown) { return; }
      std::uint32_t most = 0;
      for (std::uint64_t i = ctx.thread_rank(); i < count; i += ctx.block_threads()) {
        most = maximum(most, Context::bits(ctx.load(values + i)) & 0x7fffffffu);
      }
      auto* const shared = static_cast<std::uint32_t*>(ctx.shared());
      if (ctx.thread_rank() == 0) { ctx.store(shared, 0u); }
      ctx.sync_block();
      most = ctx.warp_max(most);
      if (ctx.thread_rank() % 32 == 0) { ctx.atomic_max(shared, most); }
      ctx.sync_block();
      first = Context::multiply(0.25f, Context::from_bits(ctx.load(shared)));
    }
  }

 private:
  template <class Context>
  TERSUM_BODY void store(Context const& ctx,
                         Element* at,
                         float value,
                         [[maybe_unused]] float start) const
  {
    float mean = value;
    if (scaled) {
      scale* const own = args.scales + (at - args.gradient);
      float const kept = Context::value(ctx.load(own));
      mean             = Context::multiply(value, raised_scale(kept, units.least));
      if constexpr (keeps) {
        if (updates) {
          context_arithmetic<Context> const math{};
          auto const where = static_cast<std::uint64_t>(at - args.gradient);
          ctx.store(own, next_scale(math, args, units, where, value, kept, start));
        }
      }
    }
    ctx.store(at, Context::template finite_element<Element>(mean));
  }
};

template <class Context, class Args>
line_access(Context const&, Args const&, line_record const&) -> line_access<Args>;

//! @brief Raises the words of the largest scales of tensors by those of one block. They were set to zero.
template <class Element>
struct find_scales_kernel : line_kernel<Element> {
  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    auto const& args          = this->args;
    row_block const block     = row_block::of(args, ctx.block_rank());
    line_record const& record = block.record;
    std::uint64_t const width = record.sorted != 0 ? record.columns : 1;
    auto const* const from    = args.scales + record.offset + block.first * width;
    std::uint32_t most        = 0;
    for (std::uint64_t i = ctx.thread_rank(); i < block.count * width; i += ctx.block_threads()) {
      most = maximum(most, Context::bits(Context::value(ctx.load(from + i))) & 0x7fffffffu);
    }
    most = ctx.warp_max(most);
    if (ctx.thread_rank() % 32 == 0 && most != 0) {
      ctx.atomic_max(args.largest + (&record - args.records), most);
    }
  }
};

}  // namespace tersum::inline v0::detail
