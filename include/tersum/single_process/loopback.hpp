// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An all-reduce among ranks that live in one process and in one thread: for tests, benchmarks and examples. For
//! ranks that are threads see loopback_transport.hpp.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/exchange.hpp>
#include <tersum/exchange/rank_blocks.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>
#include <tersum/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
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
//! The arrays lie in the executor's memory, and the work is enqueued on it. In ring order the array is cut into one block for each rank, as
//! `rank_blocks` does; the partial sum is the left operand. *Errors*: wires of unlike counts; those of the executor.
template <class Executor, reduce_op Op>
[[nodiscard]] status loopback_all_reduce(Executor const& exec,
                                         std::span<wire<Op> const> ranks,
                                         reduction_order order);

//! @brief One rank of a loopback exchange: its plan and its memory.
template <class Codec, class Element>
struct loopback_rank {
  using codec_type = Codec;

  tersum::plan<Codec> plan;
  std::span<Element> gradient;     //!< As for `all_reduce_mean`, like the following.
  std::span<std::byte> state;      //!< Of this rank alone.
  std::span<std::byte> workspace;  //!< Of this rank alone.

  [[nodiscard]] status check() const
  {
    return detail::check_arguments(plan, gradient, state, workspace);
  }
  [[nodiscard]] auto arrays() const
  {
    return detail::exchange_arrays{plan, gradient, gradient, state, workspace};
  }
};

//! @brief One rank of a loopback exchange of shards: its plan and its memory, as for `reduce_scatter_mean` or `all_gather_values`.
template <class Codec, class Given, class Got = Given>
struct loopback_shard {
  using codec_type = Codec;

  tersum::plan<Codec> plan;
  std::span<Given> given;          //!< The gradient, or of all values the rank's own.
  std::span<Got> got;              //!< The rank's shard of the mean, or all values.
  std::span<std::byte> state;      //!< Of this rank alone.
  std::span<std::byte> workspace;  //!< Of this rank alone.

  [[nodiscard]] status check() const
  {
    if constexpr (publishing<Codec>) {
      return detail::check_published(plan, given, got, state, workspace);
    } else {
      status const s = detail::check_arguments(plan, given, state, workspace);
      return s.ok() ? detail::check_array(plan, got, plan.shard_size(), state, workspace) : s;
    }
  }
  [[nodiscard]] auto arrays() const
  {
    return detail::exchange_arrays{plan, given, got, state, workspace};
  }
};

//! @brief The exchange of a codec among all ranks in one call, round by round: `all_reduce_mean` of `loopback_rank`s,
//! `reduce_scatter_mean` or `all_gather_values` of `loopback_shard`s. The ranks' states must be initialized. *Errors*: those of these
//! calls; no ranks, or more than 256; a plan whose rank is not its place in the list.
//! @param order  Of rounds that the codec lets transports reduce.
template <class Executor, std::ranges::contiguous_range Ranks>
[[nodiscard]] status loopback_exchange(Executor const& exec,
                                       Ranks const& ranks,
                                       reduction_order order = reduction_order::ring);

}  // namespace tersum::inline v0

#include <tersum/single_process/detail/loopback.ipp>
