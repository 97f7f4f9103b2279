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

//! Whether a round is of a kind that reduces nothing.
template <class Round, template <class...> class Kind>
inline constexpr bool is_kind = false;
template <template <class...> class Kind, class... T>
inline constexpr bool is_kind<Kind<T...>, Kind> = true;

//! Calls the caller's collective on a wire that has elements, and reads its answer.
template <class Reduce, class Wire>
[[nodiscard]] status reduce_round(Reduce& reduce, Wire const& round)
{
  constexpr bool taken = std::invocable<Reduce&, Wire>;
  static_assert(
    taken || !is_kind<Wire, gather_wire>,
    "tersum: the collective takes no tersum::gather_wire, whose parts all ranks get: write it as [](auto const& round) { ... }");
  static_assert(
    taken || !is_kind<Wire, scatter_wire>,
    "tersum: the collective takes no tersum::scatter_wire, whose parts the ranks exchange: write it as [](auto const& round) { ... }");
  static_assert(
    taken || !is_kind<Wire, shards_wire_of>,
    "tersum: the collective takes no tersum::shards_wire_of, whose parts the ranks exchange: write it as [](auto const& round) { ... }");
  static_assert(
    taken || !is_kind<Wire, gather_wire_of>,
    "tersum: the collective takes no tersum::gather_wire_of, whose parts all ranks get: write it as [](auto const& round) { ... }");
  static_assert(
    taken || !requires { round.sum; },
    "tersum: the collective takes no tersum::summed_wire_of, of which each rank gets the sum of its part: write it as [](auto const& round) { ... }");
  static_assert(
    taken || !requires { round.op; },
    "tersum: the collective takes no tersum::wire, of which all ranks get the reduction: write it as [](auto const& round) { ... }");
  using answer = std::invoke_result_t<Reduce&, Wire>;
  if (round.count == 0) { return {}; }
  if constexpr (std::is_void_v<answer>) {
    reduce(round);
    return {};
  } else if constexpr (std::same_as<answer, status>) {
    return reduce(round);
  } else {
    static_assert(
      (std::is_integral_v<answer> && !std::same_as<answer, bool>) || std::is_enum_v<answer>,
      "tersum: reduce must return nothing, a tersum::status, or a transport's integer or enumerator, 0 for success");
    answer const native = reduce(round);
    return native == answer{} ? status{} : transport_error(static_cast<int>(native));
  }
}

//! What a caller passed, without std::ref.
template <class Reduce>
using collective_of = std::remove_cvref_t<std::unwrap_reference_t<std::remove_cvref_t<Reduce>>>;

//! Whether a collective does a stage or a round itself, as part of its `exchange`.
template <class Reduce, class Codec, class Entry>
inline constexpr bool does_itself = false;

template <class Reduce, class Codec, class Entry>
requires requires { collective_of<Reduce>::template does<Codec, Entry>; }
inline constexpr bool does_itself<Reduce, Codec, Entry> =
  collective_of<Reduce>::template does<Codec, Entry>;

//! All stages and rounds that a collective does itself, in the place of `stage::encode`.
template <class Codec, class Element, class Reduce>
[[nodiscard]] status exchange_at_once(plan<Codec> const& plan,
                                      exchange_args<Codec, Element> const& args,
                                      Reduce& reduce)
{
  collective_of<Reduce> const& collective = reduce;
  return collective.exchange(plan, args);
}

//! @brief What the stages of one rank work with. `all_reduce_mean` reads and writes the gradient, so that both arguments have
//! the same array; `reduce_scatter_mean` reads a gradient and writes a shard, `all_gather_values` reads a shard and writes values.
template <class Codec, class In, class Out>
struct exchange_arrays {
  exchange_args<Codec, In> in;
  exchange_args<Codec, Out> out;

  template <class Stage>
  [[nodiscard]] auto const& of(Stage) const noexcept
  {
    constexpr bool writes =
      Stage::part == exchange_part::decode || std::is_same_v<Stage, stage::recall>;
    if constexpr (writes) {
      return out;
    } else {
      return in;
    }
  }
};

//! The arguments of one rank with the array that its exchange reads, and with the one that it writes.
template <class Codec, class In, class Out>
[[nodiscard]] exchange_arrays<Codec, In, Out> make_arrays(plan<Codec> const& plan,
                                                          std::span<In> in,
                                                          std::span<Out> out,
                                                          std::span<std::byte> state,
                                                          std::span<std::byte> workspace)
{
  return {make_args(plan, in.data(), state, workspace),
          make_args(plan, out.data(), state, workspace)};
}

//! @brief The walk of every exchange, whatever its form: performs stages and calls the collective with the wires of rounds.
template <class Executor, class Codec, class In, class Out, class Reduce>
[[nodiscard]] status walk_exchange(Executor const& exec,
                                   plan<Codec> const& plan,
                                   exchange_arrays<Codec, In, Out> const& arrays,
                                   std::span<std::byte> workspace,
                                   Reduce& reduce)
{
  constexpr bool whole = !ending_in_shards<Codec> && !publishing<Codec>;
  return walk(typename Codec::stages{}, [&]<class Entry>(Entry entry) -> status {
    if constexpr (whole && does_itself<Reduce, Codec, Entry>) {
      if constexpr (std::same_as<Entry, stage::encode>) {
        return exchange_at_once(plan, arrays.in, reduce);
      }
      return {};
    } else if constexpr (is_round<Entry>) {
      return reduce_round(reduce, wire_of(entry, plan, workspace));
    } else {
      return exec.perform(entry, plan, arrays.of(entry));
    }
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
  static_assert(!ending_in_shards<Codec>,
                "tersum: all_reduce_mean takes no codec with shard: call "
                "reduce_scatter_mean");
  static_assert(!publishing<Codec>,
                "tersum: all_reduce_mean takes no codec with publish: call all_gather_values");
  auto const values = detail::span_of(gradient);
  if (status const s = detail::check_arguments(plan, values, state, workspace); !s.ok()) {
    return s;
  }
  if (status const s = exec.check(); !s.ok()) { return s; }
  return detail::walk_exchange(
    exec, plan, detail::make_arrays(plan, values, values, state, workspace), workspace, reduce);
}

}  // namespace tersum::inline v0
