// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The walk of an exchange: its arguments, checked and laid out, and stages and rounds in the order of the codec's list.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/gradient_memory.hpp>
#include <tersum/exchange/wires.hpp>
#include <tersum/plan.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum/wire.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief Calls visit(entry) for each entry in order, until one returns an error; returns that.
//! @param visit  status(Entry), for values of each type of the list.
template <class... Entries, class Visit>
[[nodiscard]] constexpr status walk(stage_list<Entries...>, Visit&& visit)
{
  status result{};
  static_cast<void>(((result = visit(Entries{}), result.ok()) && ...));
  return result;
}

namespace detail {

//! @brief The arguments of one rank; `initialize` has neither gradient nor workspace.
template <class Codec, class Element>
[[nodiscard]] exchange_args<Codec, Element> make_args(plan<Codec> const& plan,
                                                      Element* gradient,
                                                      std::span<std::byte> state,
                                                      std::span<std::byte> workspace) noexcept
{
  exchange_args<Codec, Element> args{};
  args.gradient = gradient;
  plan.fill(args);
  section_list kept{state}, work{workspace};
  plan.take_state(kept, args);
  plan.take_workspace(work, args);
  return args;
}

//! What is said of memory that is not what the plan says.
struct memory_sentences {
  std::string_view size, is_null, misaligned, overlaps = {};
};
inline constexpr memory_sentences of_gradient{"gradient.size() differs from the plan's coordinates",
                                              "gradient is a null pointer",
                                              "gradient is not aligned to its element type",
                                              "gradient overlaps state or workspace"};
inline constexpr memory_sentences of_values{"values.size() differs from the plan's coordinates",
                                            "values is a null pointer",
                                            "values is not aligned to its element type",
                                            "values overlaps state or workspace"};
inline constexpr memory_sentences of_shard{"shard.size() differs from plan.shard_size()",
                                           "shard is a null pointer",
                                           "shard is not aligned to its element type",
                                           "shard overlaps state or workspace"};
inline constexpr memory_sentences of_state{"state is smaller than plan.state_bytes()",
                                           "state is a null pointer",
                                           "state is not aligned to 16 bytes",
                                           "state overlaps workspace"};
inline constexpr memory_sentences of_workspace{"workspace is smaller than plan.workspace_bytes()",
                                               "workspace is a null pointer",
                                               "workspace is not aligned to 16 bytes"};

//! Whether memory of so many bytes serves where `needed` are.
[[nodiscard]] inline status check_memory(std::span<std::byte const> memory,
                                         std::size_t needed,
                                         memory_sentences const& say,
                                         std::size_t alignment = 16) noexcept
{
  if (memory.size() < needed) { return {error_code::invalid_argument, say.size}; }
  if (needed == 0) { return {}; }
  if (memory.data() == nullptr) { return {error_code::invalid_argument, say.is_null}; }
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % alignment != 0) {
    return {error_code::invalid_argument, say.misaligned};
  }
  return {};
}

//! Checks all arguments of an exchange of one array, which must have `count` elements; the array is called a shard unless `say` differs.
template <class Codec, class Element>
[[nodiscard]] status check_array(plan<Codec> const& plan,
                                 std::span<Element> array,
                                 std::uint64_t count,
                                 std::span<std::byte const> state,
                                 std::span<std::byte const> workspace,
                                 memory_sentences const& say = of_shard) noexcept
{
  if (status const made = plan.check(); !made.ok()) { return made; }
  if (array.size() != count) { return {error_code::invalid_argument, say.size}; }
  std::size_t const kept    = plan.state_bytes();
  std::size_t const scratch = plan.workspace_bytes();
  for (status const s :
       {check_memory(std::as_bytes(array), array.size_bytes(), say, alignof(Element)),
        check_memory(state, kept, of_state),
        check_memory(workspace, scratch, of_workspace)}) {
    if (!s.ok()) { return s; }
  }
  // Spans may be longer than what is used of them.
  if (!are_apart(state.data(), kept, workspace.data(), scratch)) {
    return {error_code::invalid_argument, of_state.overlaps};
  }
  if (!are_apart(array.data(), array.size_bytes(), state.data(), kept) ||
      !are_apart(array.data(), array.size_bytes(), workspace.data(), scratch)) {
    return {error_code::invalid_argument, say.overlaps};
  }
  return {};
}

//! The same of all coordinates.
template <class Codec, class Element>
[[nodiscard]] status check_arguments(plan<Codec> const& plan,
                                     std::span<Element> whole,
                                     std::span<std::byte const> state,
                                     std::span<std::byte const> workspace) noexcept
{
  auto const& say = publishing<Codec> ? of_values : of_gradient;
  return check_array(plan, whole, plan.coordinates(), state, workspace, say);
}

//! Calls the caller's collective on a wire that has elements, and reads its answer.
template <class Reduce, class Wire>
[[nodiscard]] status reduce_round(Reduce& reduce, Wire const& round)
{
  static_assert(
    std::invocable<Reduce&, Wire>,
    "tersum: the collective does not take this kind of round, of which docs/transports.md says what it must do: write it as [](auto const& round) { ... }");
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

  exchange_arrays(plan<Codec> const& plan,
                  std::span<In> from,
                  std::span<Out> to,
                  std::span<std::byte> state,
                  std::span<std::byte> workspace) noexcept
    : in(make_args(plan, from.data(), state, workspace)),
      out(make_args(plan, to.data(), state, workspace))
  {
  }

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

//! @brief The walk of every exchange, whatever its form: performs stages and calls the collective with the wires of rounds.
//! @tparam First, Last  The parts that are walked.
//! @param checked       What was found of the arrays.
template <exchange_part First = exchange_part::measure,
          exchange_part Last  = exchange_part::decode,
          class Executor,
          class Codec,
          class In,
          class Out,
          class Reduce>
[[nodiscard]] status walk_exchange(status const& checked,
                                   Executor const& exec,
                                   plan<Codec> const& plan,
                                   std::span<In> in,
                                   std::span<Out> out,
                                   std::span<std::byte> state,
                                   std::span<std::byte> workspace,
                                   Reduce& reduce)
{
  if (!checked.ok()) { return checked; }
  if (status const s = exec.check(); !s.ok()) { return s; }
  exchange_arrays const arrays{plan, in, out, state, workspace};
  constexpr bool whole = !ending_in_shards<Codec> && !publishing<Codec>;
  return walk(typename Codec::stages{}, [&]<class Entry>(Entry entry) -> status {
    if constexpr (Entry::part < First || Last < Entry::part) {
      return {};
    } else if constexpr (whole && does_itself<Reduce, Codec, Entry>) {
      return std::same_as<Entry, stage::encode> ? exchange_at_once(plan, arrays.in, reduce)
                                                : status{};
    } else if constexpr (is_round<Entry>) {
      return reduce_round(reduce, wire_of(entry, plan, workspace));
    } else {
      return exec.perform(entry, plan, arrays.of(entry));
    }
  });
}

//! Stands for the rounds that a caller makes between the parts of an exchange.
inline constexpr auto rounds_of_caller = [](auto const&) {};

//! The stages of one part, of a gradient.
template <exchange_part Part, class Executor, class Codec, class Gradient>
[[nodiscard]] status perform_part(Executor const& exec,
                                  plan<Codec> const& plan,
                                  Gradient& gradient,
                                  std::span<std::byte> state,
                                  std::span<std::byte> workspace)
{
  static_assert(!publishing<Codec>,
                "tersum: values are exchanged by all_gather_values; in parts by encode_shard "
                "and decode_values");
  auto const values    = span_of(gradient);
  status const checked = check_arguments(plan, values, state, workspace);
  return walk_exchange<Part, Part>(
    checked, exec, plan, values, values, state, workspace, rounds_of_caller);
}

}  // namespace detail

}  // namespace tersum::inline v0
