// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What lies in the memory of an exchange: wires of its rounds in the workspace; header, residuals, gain, scales in the state.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/plan.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/stages.hpp>
#include <tersum/state.hpp>
#include <tersum/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @name What a state holds
//! Pointers into memory of the executor: the host's, or the device's.
//! They are made of the plan of this rank, and of plan.state_bytes() initialized bytes, aligned to 16.
//! @{

//! The first bytes of the state: seed, step and the flag of values that are not finite.
template <class Codec>
[[nodiscard]] state_header const* header_of(plan<Codec> const&,
                                            std::span<std::byte const> state) noexcept
{
  return reinterpret_cast<state_header const*>(state.data());
}

//! @brief All that feedback keeps, in the unit of the gradient.
//!
//! The last plan.coordinates() floats are the rank's own residual, in the order of the gradient. Under `two_shot` with
//! fixed chunks other floats come before them: what the second encoding lost of the chunks that this rank owns. Under
//! `kept_by_owners` there are only these, under `kept_by_ranks` none of them. Only the same rank of a world of the same
//! size can use those again. Under `publish` there is one float for each coordinate of the rank's shard. Under
//! `kept_in<bfloat16>` all of them are bfloat16s.
template <class Codec>
[[nodiscard]] std::span<residual_element<Codec>> residuals_of(plan<Codec> const& plan,
                                                              std::span<std::byte> state) noexcept
{
  static_assert(feeds_back<Codec> || owner_feeds_back<Codec>,
                "tersum: this codec has no feedback, so that its state has no residuals");
  using element         = residual_element<Codec>;
  std::size_t const own = plan.offset("residual"), owners = plan.offset("owner_residual");
  std::size_t const end = own + (feeds_back<Codec> ? plan.own_coordinates() : 0) * sizeof(element);
  std::size_t const first = owners > 0 ? owners : own;
  return {reinterpret_cast<element*>(state.data() + first), (end - first) / sizeof(element)};
}

//! @brief The gain by which an exchange multiplies what was kept, within a state: of `decayed_feedback`, `averaged_feedback`, and
//! yours with a `kept_weight`.
//!
//! `initialize` makes it 1, and it stays what it is until it is written again: between the last stage of one exchange and the
//! first of the next one, in the order of the executor's stream. Finite and not negative. Ranks may differ in it, since what
//! they keep is their own. Costs nothing.
//! @return One float of the executor's memory.
template <class Codec>
requires(weighs_kept<Codec>)
  [[nodiscard]] std::span<float, 1> feedback_gain(plan<Codec> const& plan,
                                                  std::span<std::byte> state) noexcept
{
  return std::span<float, 1>{reinterpret_cast<float*>(state.data() + plan.offset("gain")), 1};
}

//! @brief The scale of each coordinate, in units of the gradient, within a state: a codec in a metric divides by it before it
//! encodes, and multiplies by it after it has decoded.
//!
//! Under `given_diagonal` write them, the same bits on every rank, after `initialize`, which makes them zeros, and before `measure`
//! of a step: of values before `encode_shard`; finite and not negative. Under `kept_diagonal` the exchange does; write them where a
//! training goes on from an optimizer's state. Those of coordinates that bypass the codec are not used. Costs nothing.
//! @return plan.coordinates() floats of the executor's memory, or bfloat16s where the metric keeps these.
template <class Codec>
requires in_metric<Codec>
[[nodiscard]] std::span<metric_scale<Codec>> metric_scales(plan<Codec> const& plan,
                                                           std::span<std::byte> state) noexcept
{
  return {reinterpret_cast<metric_scale<Codec>*>(state.data() + plan.offset("scales")),
          plan.coordinates()};
}
//! @}

namespace detail {

//! The array of this name in a workspace.
template <class T, class Codec>
[[nodiscard]] T* work_at(plan<Codec> const& plan,
                         std::span<std::byte> workspace,
                         section name) noexcept
{
  return reinterpret_cast<T*>(workspace.data() + plan.workspace_sections().offset(name));
}

}  // namespace detail

//! @name The rounds of an exchange
//! What the caller's collective is called with: views into the workspace of a plan, aligned to 16 bytes, which cost nothing
//! and check nothing. A wire can travel after the call that makes it ready (exchange.hpp), and must have travelled before
//! the next call that needs it. A round that the codec does not have does not compile.
//! @{

//! The agreed scalars: the norms or the magnitudes; of paired low-rank factors it is P.
template <class Codec>
[[nodiscard]] auto agreed_wire(plan<Codec> const& plan, std::span<std::byte> workspace) noexcept
{
  static_assert(
    agrees<Codec>,
    "tersum: this codec agrees on nothing: go on with its payload, scattered or gathered wire");
  using op = typename Codec::agreed_op;
  // Here and below no empty member is left out: with clang as the compiler of the host nvcc 13.0 would crash.
  return wire<op>{.data  = detail::work_at<typename op::element>(plan, workspace, "agreed"),
                  .count = plan.agreed_bytes() / sizeof(typename op::element),
                  .op    = {},
                  .ranks = plan.ranks().size};
}

//! Of a two-shot codec: this rank's codes of all parts, to be sent to the owners of the parts.
template <scattering Codec>
[[nodiscard]] scatter_wire<std::uint32_t> scattered_wire(plan<Codec> const& plan,
                                                         std::span<std::byte> workspace) noexcept
{
  return {.sent     = detail::work_at<std::uint32_t>(plan, workspace, "payload"),
          .received = detail::work_at<std::uint32_t>(plan, workspace, "received"),
          .count    = plan.part_bytes() / sizeof(std::uint32_t),
          .ranks    = plan.ranks().size};
}

//! Of a sharded codec: this rank's codes of all shards, to be sent to the ranks whose shards they are.
template <sharding Codec>
[[nodiscard]] auto shards_wire(plan<Codec> const& plan, std::span<std::byte> workspace) noexcept
{
  return shards_wire_of<std::uint32_t, typename Codec::counts_type>{
    .sent     = detail::work_at<std::uint32_t>(plan, workspace, "payload"),
    .received = detail::work_at<std::uint32_t>(plan, workspace, "received"),
    .count    = plan.payload_bytes() / sizeof(std::uint32_t),
    .ranks    = plan.ranks().size,
    .parts    = plan};
}

//! Of a codec of summed shards: this rank's codes of all shards, of which each rank gets the sum of its own.
template <summing Codec>
[[nodiscard]] auto summed_wire(plan<Codec> const& plan, std::span<std::byte> workspace) noexcept
{
  using op      = typename Codec::payload_op;
  using element = typename op::element;
  return summed_wire_of<op, typename Codec::counts_type>{
    .data  = detail::work_at<element>(plan, workspace, "payload"),
    .sum   = detail::work_at<element>(plan, workspace, "received"),
    .count = plan.payload_bytes() / sizeof(element),
    .ranks = plan.ranks().size,
    .parts = plan};
}

//! Of a values codec: this rank's codes of its own shard, which all ranks gather.
template <publishing Codec>
[[nodiscard]] auto published_wire(plan<Codec> const& plan, std::span<std::byte> workspace) noexcept
{
  return gather_wire_of<std::uint32_t, typename Codec::counts_type>{
    .gathered = detail::work_at<std::uint32_t>(plan, workspace, "gathered"),
    .count    = plan.payload_bytes() / sizeof(std::uint32_t),
    .ranks    = plan.ranks().size,
    .parts    = plan};
}

//! Of a values codec: the coordinates of its shard that bypass the codec, which all ranks gather.
template <publishing Codec>
[[nodiscard]] auto published_bypass_wire(plan<Codec> const& plan,
                                         std::span<std::byte> workspace) noexcept
{
  using parts = typename Codec::counts_type::bypass_parts;
  return gather_wire_of<float, parts>{.gathered = detail::work_at<float>(plan, workspace, "bypass"),
                                      .count    = plan.bypassed(),
                                      .ranks    = plan.ranks().size,
                                      .parts    = {plan}};
}

//! What every rank sends to all others: its part of the mean (two shots), its codes (gathered), or its coordinates (TopK).
template <class Codec>
requires(gathering<Codec> || scattering<Codec> || copying<Codec>)
  [[nodiscard]] gather_wire<std::uint32_t> gathered_wire(plan<Codec> const& plan,
                                                         std::span<std::byte> workspace) noexcept
{
  std::uint64_t bytes = plan.part_bytes();
  if constexpr (requires { plan.mean_part_bytes(); }) { bytes = plan.mean_part_bytes(); }
  return {.gathered = detail::work_at<std::uint32_t>(plan, workspace, "gathered"),
          .count    = bytes / sizeof(std::uint32_t),
          .ranks    = plan.ranks().size};
}

//! The codes, or the converted coordinates; of low-rank factors it is Q, or the only factor of an alternating exchange.
template <class Codec>
[[nodiscard]] auto payload_wire(plan<Codec> const& plan, std::span<std::byte> workspace) noexcept
{
  using op = typename Codec::payload_op;
  wire<op> payload{.data  = detail::work_at<typename op::element>(plan, workspace, "payload"),
                   .count = plan.payload_bytes() / sizeof(typename op::element),
                   .op    = {},
                   .ranks = plan.ranks().size};
  if constexpr (has_combine_at<op>) {
    payload.op.parts =
      detail::work_at<detail::selection_header const>(plan, workspace, "selection");
  }
  return payload;
}

//! The coordinates that bypass the codec, summed in float; where none do, no data.
template <class Codec>
[[nodiscard]] auto bypass_wire(plan<Codec> const& plan, std::span<std::byte> workspace) noexcept
{
  wire<native_sum<float>> round{
    .data = nullptr, .count = plan.bypassed(), .op = {}, .ranks = plan.ranks().size};
  if (round.count > 0) { round.data = detail::work_at<float>(plan, workspace, "bypass"); }
  return round;
}
//! The wire of a round in the list of stages: one of the above. A round of yours has another overload, in its own namespace.
//! @{
// clang-format off
template <class Codec> [[nodiscard]] auto wire_of(rounds::agree, plan<Codec> const& plan, std::span<std::byte> workspace) noexcept { return agreed_wire(plan, workspace); }
template <class Codec> [[nodiscard]] auto wire_of(rounds::sum_bypass, plan<Codec> const& plan, std::span<std::byte> workspace) noexcept { return bypass_wire(plan, workspace); }
template <class Codec> [[nodiscard]] auto wire_of(rounds::reduce_payload, plan<Codec> const& plan, std::span<std::byte> workspace) noexcept { return payload_wire(plan, workspace); }
template <class Codec> [[nodiscard]] auto wire_of(rounds::scatter_parts, plan<Codec> const& plan, std::span<std::byte> workspace) noexcept { return scattered_wire(plan, workspace); }
template <class Codec> [[nodiscard]] auto wire_of(rounds::scatter_shards, plan<Codec> const& plan, std::span<std::byte> workspace) noexcept { return shards_wire(plan, workspace); }
template <class Codec> [[nodiscard]] auto wire_of(rounds::sum_shards, plan<Codec> const& plan, std::span<std::byte> workspace) noexcept { return summed_wire(plan, workspace); }
template <class Codec> [[nodiscard]] auto wire_of(rounds::publish_bypass, plan<Codec> const& plan, std::span<std::byte> workspace) noexcept { return published_bypass_wire(plan, workspace); }
template <class Codec> [[nodiscard]] auto wire_of(rounds::publish_parts, plan<Codec> const& plan, std::span<std::byte> workspace) noexcept { return published_wire(plan, workspace); }
template <class Codec> [[nodiscard]] auto wire_of(rounds::gather_parts, plan<Codec> const& plan, std::span<std::byte> workspace) noexcept { return gathered_wire(plan, workspace); }
// clang-format on
//! @}
//! @}

}  // namespace tersum::inline v0
