// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An all-reduce among ranks that live in one process and in one thread: for tests, benchmarks and examples. For
//! ranks that are threads see loopback_transport.hpp.

#pragma once

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
//! The arrays lie in the executor's memory, and the work is enqueued on it. In ring order the array is cut into one
//! block for each rank, as `rank_blocks` does; the partial sum is the left operand. *Errors*: wires of unlike counts; those of the
//! executor.
template <class Executor, reduce_op Op>
[[nodiscard]] status loopback_all_reduce(Executor const& exec,
                                         std::span<wire<Op> const> ranks,
                                         reduction_order order);

namespace detail {

//! @brief An exchange of any form among all ranks, round by round.
template <class Executor, class Ranks>
[[nodiscard]] status loopback_exchange(Executor const& exec,
                                       Ranks const& ranks,
                                       reduction_order order = reduction_order::direct);

}  // namespace detail

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
    return detail::make_arrays(plan, gradient, gradient, state, workspace);
  }
};

//! @brief `all_reduce_mean` for all ranks in one call, round by round. The ranks' states must be initialized. *Errors*: those of
//! `all_reduce_mean`; no ranks, or more than 256; a plan whose rank is not its place in the list.
template <class Executor, class Codec, class Element>
[[nodiscard]] status loopback_all_reduce_mean(Executor const& exec,
                                              std::span<loopback_rank<Codec, Element> const> ranks,
                                              reduction_order order = reduction_order::ring)
{
  return detail::loopback_exchange(exec, ranks, order);
}

//! @brief One rank of a loopback exchange of shards: its plan and its memory, as for `reduce_scatter_mean`.
template <class Codec, class Element, class ShardElement = Element>
struct loopback_shard {
  using codec_type = Codec;

  tersum::plan<Codec> plan;
  std::span<Element> gradient;
  std::span<ShardElement> shard;
  std::span<std::byte> state;      //!< Of this rank alone.
  std::span<std::byte> workspace;  //!< Of this rank alone.

  [[nodiscard]] status check() const
  {
    status const s = detail::check_arguments(plan, gradient, state, workspace);
    return s.ok() ? detail::check_shard(plan, shard, state, workspace) : s;
  }
  [[nodiscard]] auto arrays() const
  {
    return detail::make_arrays(plan, gradient, shard, state, workspace);
  }
};

//! @brief `reduce_scatter_mean` for all ranks in one call, round by round, with errors as of `loopback_all_reduce_mean`.
template <class Executor, class Codec, class Element, class ShardElement>
[[nodiscard]] status loopback_reduce_scatter_mean(
  Executor const& exec, std::span<loopback_shard<Codec, Element, ShardElement> const> ranks)
{
  return detail::loopback_exchange(exec, ranks);
}

//! @brief One rank of an exchange of values.
template <class Codec, class ShardElement, class Element = ShardElement>
struct loopback_values {
  using codec_type = Codec;

  tersum::plan<Codec> plan;
  std::span<ShardElement> shard;
  std::span<Element> values;
  std::span<std::byte> state;      //!< Of this rank alone.
  std::span<std::byte> workspace;  //!< Of this rank alone.

  [[nodiscard]] status check() const
  {
    return detail::check_published(plan, shard, values, state, workspace);
  }
  [[nodiscard]] auto arrays() const
  {
    return detail::make_arrays(plan, shard, values, state, workspace);
  }
};

//! @brief `all_gather_values` for all ranks in one call, round by round, with errors as of `loopback_all_reduce_mean`.
template <class Executor, class Codec, class ShardElement, class Element>
[[nodiscard]] status loopback_all_gather_values(
  Executor const& exec, std::span<loopback_values<Codec, ShardElement, Element> const> ranks)
{
  return detail::loopback_exchange(exec, ranks);
}

}  // namespace tersum::inline v0

#include <tersum/single_process/detail/loopback.ipp>
