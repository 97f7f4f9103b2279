// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The squared norm of every chunk of an array.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/exchange/gradient_memory.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief Chunks of an array, the last of which may be short.
template <chunker Chunker>
[[nodiscard]] constexpr std::size_t chunk_count(Chunker const&, std::size_t coordinates) noexcept
{
  return detail::divide_up(coordinates, Chunker::chunk_size);
}

namespace detail {

template <int Size, class Element>
struct chunk_norms_kernel {
  using shape                  = norm_shape<Size, Element>;
  static constexpr int threads = 128;
  static constexpr int shared  = 0;

  Element const* values;
  std::uint64_t count;
  float* norms;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    unsigned const member     = ctx.thread_rank() % shape::lanes;
    unsigned const group      = ctx.thread_rank() % 32 / shape::lanes;
    std::uint64_t const warp  = ctx.block_rank() * std::uint64_t{4} + ctx.thread_rank() / 32;
    std::uint64_t const first = warp * shape::chunks_per_warp;
    bool const regular        = (first + shape::chunks_per_warp) * Size <= count &&
                         reinterpret_cast<std::uintptr_t>(values) % 16 == 0;
    float parts[shape::chunks][shape::rows];
    TERSUM_UNROLL
    for (int i = 0; i < shape::chunks; ++i) {
      std::uint64_t const number = first + (group * shape::chunks + static_cast<unsigned>(i));
      std::uint64_t const begin  = number * Size + member * shape::row;
      if (regular) {
        auto const load = [&](int within, float* v) {
          thread_values<8>::load(ctx, values + begin + static_cast<unsigned>(within), v);
        };
        add_squares<shape, Context>(ctx, load, parts[i]);
      } else {
        auto const load = [&](int within, float* v) {
          std::uint64_t const at = begin + static_cast<unsigned>(within);
          TERSUM_UNROLL
          for (unsigned j = 0; j < 8; ++j) {
            v[j] = at + j < count ? Context::value(ctx.load(values + at + j)) : 0.0f;
          }
        };
        add_squares<shape, Context>(ctx, load, parts[i]);
      }
    }
    add_lanes<shape::lanes>(ctx, member, parts);
    if (member >= static_cast<unsigned>(shape::chunks)) { return; }
    std::uint64_t const chunk = first + (group * shape::chunks + member);
    TERSUM_UNROLL
    for (int i = 0; i < shape::chunks; i += shape::lanes) {
      std::uint64_t const number = chunk + static_cast<unsigned>(i);
      if (number * Size < count) { ctx.store(norms + number, parts[i / shape::lanes][0]); }
    }
  }
};

}  // namespace detail

//! @brief norms[c] = the sum of the squares of values[c C .. c C + C - 1], with C = Chunker::chunk_size.
//!
//! *Reads* `values`, *writes* `norms`, both of the executor's memory; they must not overlap. `values` needs the alignment of
//! its elements; one that is aligned to 16 bytes is faster. *Needs* no workspace. *Errors*: norms.size() is not
//! chunk_count(chunker, values.size()), 2^31 chunks or more, a null or misaligned address, an overlap.
//!
//! The sums are those that an exchange agrees on, to the bit, on every executor: 256 accumulators a chunk, chained by fused
//! multiply-adds, then added pairwise. The norm of a chunk is not finite if one of its values is not, or if the sum of squares
//! exceeds the range of float. Enqueued on the executor; does not synchronize.
//! @param chunker  `fixed_chunks<C>`, or any other with a `chunk_size`: a power of two, 32 or more.
//!
//! @par Example
//! @snippet examples/05_rotate_and_quantize.cpp agree
template <executor Executor, chunker Chunker, gradient_values Values>
[[nodiscard]] status chunk_norms(Executor const& exec,
                                 Chunker const& chunker,
                                 Values const& values,
                                 std::span<float> norms)
{
  constexpr int size = Chunker::chunk_size;
  static_assert(size >= 32 && (size & (size - 1)) == 0,
                "tersum: chunk_norms needs chunks of a power of two, 32 or more");
  auto const from          = detail::span_of(values);
  using element            = typename decltype(from)::value_type;
  std::size_t const chunks = chunk_count(chunker, from.size());
  status const s =
    detail::argument_check{}
      .require(norms.size() == chunks, "norms has not one element for each chunk of values")
      .chunks(chunks)
      .address(from, alignof(element), "values is a null pointer, or not aligned to its elements")
      .address(norms, alignof(float), "norms is a null pointer, or not aligned to its elements")
      .require(detail::are_disjoint(from, norms), "norms overlaps values")
      .result();
  if (!s.ok()) { return s; }
  return detail::perform(
    exec,
    [&](int threads, auto set) {
      detail::parallel_for(threads, chunks, [&](std::uint64_t chunk) {
        detail::with_whole_chunk<size>(
          from, chunk, [&](auto const* of) { norms[chunk] = detail::square_norm<size>(set, of); });
      });
    },
    [&](auto const& on) {
      using kernel = detail::chunk_norms_kernel<size, element>;
      return on.run(kernel{from.data(), from.size(), norms.data()},
                    detail::divide_up(chunks, kernel::shape::chunks_per_block));
    });
}

}  // namespace tersum::inline v0
