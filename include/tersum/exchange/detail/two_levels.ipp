// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of two_levels.hpp.

namespace tersum::inline v0 {

template <executor Executor, on_two_levels Codec>
status initialize(Executor const& exec,
                  plan<Codec> const& plan,
                  std::span<std::byte> state,
                  std::uint64_t seed)
{
  if (status const s = plan.check(); !s.ok()) { return s; }
  if (status const s = detail::check_state(state, plan.state_bytes()); !s.ok()) { return s; }
  // Each exchange draws numbers of its own, and within hosts each host.
  constexpr std::uint64_t apart = 0x9e3779b97f4a7c15u;
  auto const host               = static_cast<std::uint64_t>(plan.hosts().rank);
  if (status const s = initialize(exec, plan.gather(), plan.gather_state(state), seed); !s.ok()) {
    return s;
  }
  if (status const s = initialize(exec, plan.between(), plan.between_state(state), seed + apart);
      !s.ok()) {
    return s;
  }
  return initialize(exec, plan.scatter(), plan.scatter_state(state), seed + apart * (2 + host));
}

template <executor Executor, on_two_levels Codec, gradient_memory Gradient, class Reduce>
status all_reduce_mean(Executor const& exec,
                       plan<Codec> const& plan,
                       Gradient&& gradient,
                       std::span<std::byte> state,
                       std::span<std::byte> workspace,
                       Reduce&& reduce)
{
  static_assert(
    requires { reduce.within, reduce.between; },
    "tersum: a two_level_codec needs two collectives: give all_reduce_mean a two_levels");
  auto const values = detail::span_of(gradient);
  if (status const s = detail::check_arguments(plan, values, state, workspace); !s.ok()) {
    return s;
  }
  if (status const s = exec.check(); !s.ok()) { return s; }
  auto const shard = plan.shard(workspace);
  auto const inner = plan.inner_workspace(workspace);
  if (status const s = reduce_scatter_mean(
        exec, plan.scatter(), values, shard, plan.scatter_state(state), inner, reduce.within);
      !s.ok()) {
    return s;
  }
  if (status const s = all_reduce_mean(
        exec, plan.between(), shard, plan.between_state(state), inner, reduce.between);
      !s.ok()) {
    return s;
  }
  return all_gather_values(
    exec, plan.gather(), shard, values, plan.gather_state(state), inner, reduce.within);
}

}  // namespace tersum::inline v0
