// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of all_reduce_mean.hpp.

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! Calls the caller's collective on a wire that has elements, and reads its answer.
template <class Reduce, class Wire, class... More>
[[nodiscard]] status reduce_round(Reduce& reduce, Wire const& round, More const&... more)
{
  static_assert(
    std::invocable<Reduce&, Wire, More...>,
    "tersum: reduce must be callable with every wire of the codec: write it as [](auto wire) { ... }");
  using answer = std::invoke_result_t<Reduce&, Wire, More...>;
  if (round.count == 0) { return {}; }
  if constexpr (std::is_void_v<answer>) {
    reduce(round, more...);
    return {};
  } else if constexpr (std::same_as<answer, status>) {
    return reduce(round, more...);
  } else {
    static_assert(
      (std::is_integral_v<answer> && !std::same_as<answer, bool>) || std::is_enum_v<answer>,
      "tersum: reduce must return nothing, a tersum::status, or a transport's integer or enumerator, 0 for success");
    answer const native = reduce(round, more...);
    return native == answer{} ? status{} : transport_error(static_cast<int>(native));
  }
}

//! The payload of a two-shot codec: one round, what is done with it, and another, or all at once in pieces.
template <executor Executor, scattering Codec, class Gradient, class Reduce>
[[nodiscard]] status exchange_parts(Executor const& exec,
                                    plan<Codec> const& plan,
                                    Gradient&& gradient,
                                    std::span<std::byte> state,
                                    std::span<std::byte> workspace,
                                    Reduce& reduce)
{
  auto const scattered = scattered_wire(plan, workspace);
  auto const gathered  = gathered_wire(plan, workspace);
  auto const between   = [&](part_range range) {
    return recompress(exec, plan, gradient, state, workspace, range);
  };
  using pieces = part_recompression<decltype(between)>;
  if constexpr (std::invocable<Reduce&, decltype(scattered), decltype(gathered), pieces>) {
    pieces const all{
      minimum(plan.owned_chunks(), std::uint64_t{scattered.count}), plan.chunk_words(), between};
    return reduce_round(reduce, scattered, gathered, all);
  } else {
    if (status const s = reduce_round(reduce, scattered); !s.ok()) { return s; }
    if (status const s = between({}); !s.ok()) { return s; }
    return reduce_round(reduce, gathered);
  }
}

//! The exchange of factors, whose reductions are exchanges.
template <executor Executor, nesting Codec, class Gradient, class Reduce>
[[nodiscard]] status all_reduce_factors(Executor const& exec,
                                        plan<Codec> const& plan,
                                        Gradient&& gradient,
                                        std::span<std::byte> state,
                                        std::span<std::byte> workspace,
                                        Reduce& reduce)
{
  std::span<std::ranges::range_value_t<Gradient>> const values{gradient};
  if (status const s = check_arguments(plan, values, state, workspace); !s.ok()) { return s; }
  auto const scratch       = plan.factors_workspace(workspace);
  void const* const q      = payload_wire(plan.factors(), scratch).data;
  void const* const bypass = bypass_wire(plan.factors(), scratch).data;
  return all_reduce_mean(
    exec, plan.factors(), values, plan.factors_state(state), scratch, [&](auto const& round) {
      if (round.data == bypass) { return reduce_round(reduce, round); }
      int const turn = round.data == q ? 1 : 0;
      return all_reduce_mean(exec,
                             plan.inner(turn),
                             std::span{round.data, round.count},
                             plan.inner_state(state, turn),
                             plan.inner_workspace(workspace, turn),
                             reduce);
    });
}

}  // namespace detail

template <executor Executor, class Codec, gradient_memory Gradient, class Reduce>
status all_reduce_mean(Executor const& exec,
                       plan<Codec> const& plan,
                       Gradient&& gradient,
                       std::span<std::byte> state,
                       std::span<std::byte> workspace,
                       Reduce&& reduce)
{
  if constexpr (nesting<Codec>) {
    return detail::all_reduce_factors(exec, plan, gradient, state, workspace, reduce);
  } else {
    if (status const s = encode(exec, plan, gradient, state, workspace); !s.ok()) { return s; }
    if constexpr (Codec::agrees) {
      if (status const s = detail::reduce_round(reduce, agreed_wire(plan, workspace)); !s.ok()) {
        return s;
      }
    }
    if constexpr (!gathering<Codec>) {
      // Before anything moves a residual: what is not finite here stops it too.
      if (status const s = detail::reduce_round(reduce, bypass_wire(plan, workspace)); !s.ok()) {
        return s;
      }
    }
    if constexpr (Codec::agrees) {
      if (status const s = advance(exec, plan, gradient, state, workspace); !s.ok()) { return s; }
    }
    if constexpr (gathering<Codec>) {
      if (status const s = detail::reduce_round(reduce, gathered_wire(plan, workspace)); !s.ok()) {
        return s;
      }
    } else {
      if constexpr (scattering<Codec>) {
        if (status const s = detail::exchange_parts(exec, plan, gradient, state, workspace, reduce);
            !s.ok()) {
          return s;
        }
      } else {
        if (status const s = detail::reduce_round(reduce, payload_wire(plan, workspace)); !s.ok()) {
          return s;
        }
      }
    }
    return decode(exec, plan, gradient, state, workspace);
  }
}

}  // namespace tersum::inline v0
