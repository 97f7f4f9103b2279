// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An all-reduce among ranks that live in one process: what tests, benchmarks and examples pair codecs with.

#pragma once

#include <tersum/collective/exchange.hpp>
#include <tersum/collective/rank_blocks.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/status.hpp>
#include <tersum/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tersum::inline v0 {

//! The order in which a loopback reduction combines the ranks.
enum class reduction_order : std::uint8_t {
  ring,    //!< As a ring reduce-scatter: block k starts at rank k and ends at rank k - 1.
  direct,  //!< Rank 0, 1, 2 ... for all elements.
};

//! @brief Reduces the wires of all ranks and gives every rank the result.
//!
//! The arrays are of the executor's memory; the work is enqueued on it. In ring order the array is cut into as many
//! blocks as there are ranks, block k holding the elements from k count / n on; the partial sum is the left operand.
template <class Executor, reduce_op Op>
[[nodiscard]] status loopback_all_reduce(Executor const& exec,
                                         std::span<wire<Op> const> ranks,
                                         reduction_order order)
{
  std::size_t const n = ranks.size();
  if (n < 2) { return {}; }
  for (wire<Op> const& other : ranks) {
    if (other.count != ranks[0].count) {
      return {error_code::invalid_argument,
              "ranks: wires differ in count, so they are of unlike plans"};
    }
  }
  rank_blocks const blocks{.count         = ranks[0].count,
                           .element_bytes = sizeof(typename Op::element),
                           .ranks = order == reduction_order::ring ? static_cast<int>(n) : 1};
  for (std::size_t block = 0; block < static_cast<std::size_t>(blocks.ranks); ++block) {
    std::size_t const begin = blocks.begin(static_cast<int>(block));
    std::size_t const end   = blocks.begin(static_cast<int>(block) + 1);
    // The block travels from rank to rank; each adds its own and keeps the partial sum.
    for (std::size_t hop = 1; hop < n; ++hop) {
      auto* const mine           = ranks[(block + hop) % n].data + begin;
      auto const* const received = ranks[(block + hop - 1) % n].data + begin;
      if (status const s =
            exec.reduce(detail::op_from(ranks[0].op, begin), mine, received, mine, end - begin);
          !s.ok()) {
        return s;
      }
    }
    std::size_t const last = (block + n - 1) % n;
    for (std::size_t rank = 0; rank < n; ++rank) {
      if (rank == last) { continue; }
      if (status const s =
            exec.copy(ranks[rank].data + begin, ranks[last].data + begin, end - begin);
          !s.ok()) {
        return s;
      }
    }
  }
  return {};
}

//! @brief One rank of a loopback exchange: its plan and its memory.
template <class Codec, class Element>
struct loopback_rank {
  using codec_type = Codec;

  tersum::plan<Codec> plan;
  std::span<Element> gradient;
  std::span<std::byte> state;
  std::span<std::byte> workspace;
};

//! @brief `all_reduce_mean` for all ranks at once, round by round.
template <class Executor, class Codec, class Element>
[[nodiscard]] status loopback_all_reduce_mean(Executor const& exec,
                                              std::span<loopback_rank<Codec, Element> const> ranks,
                                              reduction_order order = reduction_order::ring);

}  // namespace tersum::inline v0

#include <tersum/collective/loopback.ipp>
