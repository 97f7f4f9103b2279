// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of reduce_scatter_mean.hpp.

#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

//! The values of a gradient as a span, which kernels take as one that they could write.
template <class Gradient>
[[nodiscard]] auto values_of(Gradient&& gradient)
{
  if constexpr (viewed_memory<Gradient>) {
    return span_of(gradient);
  } else {
    using element = std::remove_cv_t<std::ranges::range_value_t<Gradient>>;
    return std::span<element>{const_cast<element*>(std::ranges::data(gradient)),
                              std::ranges::size(gradient)};
  }
}

template <class Codec, class Element>
[[nodiscard]] status check_shard(plan<Codec> const& plan,
                                 std::span<Element> shard,
                                 std::span<std::byte const> state,
                                 std::span<std::byte const> workspace) noexcept
{
  return check_array(plan, shard, plan.shard_size(), state, workspace, of_shard);
}

}  // namespace detail

template <executor Executor,
          ending_in_shards Codec,
          gradient_values Gradient,
          gradient_memory Shard,
          class Reduce>
status reduce_scatter_mean(Executor const& exec,
                           plan<Codec> const& plan,
                           Gradient&& gradient,
                           Shard&& shard,
                           std::span<std::byte> state,
                           std::span<std::byte> workspace,
                           Reduce&& reduce)
{
  auto const values = detail::values_of(gradient);
  auto const means  = detail::span_of(shard);
  if (status const s = detail::check_arguments(plan, values, state, workspace); !s.ok()) {
    return s;
  }
  if (status const s = detail::check_shard(plan, means, state, workspace); !s.ok()) { return s; }
  if (status const s = exec.check(); !s.ok()) { return s; }
  return detail::walk_exchange(
    exec, plan, detail::make_arrays(plan, values, means, state, workspace), workspace, reduce);
}

template <executor Executor, ending_in_shards Codec, gradient_memory Shard>
status decode_shard(Executor const& exec,
                    plan<Codec> const& plan,
                    Shard&& shard,
                    std::span<std::byte> state,
                    std::span<std::byte> workspace)
{
  auto const means     = detail::span_of(shard);
  status const checked = detail::check_shard(plan, means, state, workspace);
  return detail::perform_checked<exchange_part::decode>(
    checked, exec, plan, means, state, workspace);
}

}  // namespace tersum::inline v0
