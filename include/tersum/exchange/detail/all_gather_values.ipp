// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of all_gather_values.hpp.

#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! Whether the shard lies where it may.
template <class Codec, class ShardElement, class Element>
[[nodiscard]] status check_place(plan<Codec> const& plan,
                                 std::span<ShardElement const> shard,
                                 std::span<Element const> values) noexcept
{
  if (are_apart(shard.data(), shard.size_bytes(), values.data(), values.size_bytes())) {
    return {};
  }
  if constexpr (codes_differences<Codec>) {
    return {error_code::invalid_argument,
            "shard overlaps values: a difference to itself says nothing"};
  } else if constexpr (std::is_same_v<ShardElement, Element>) {
    if (shard.data() == values.data() + plan.shard_begin(plan.ranks().rank)) { return {}; }
  }
  return {error_code::invalid_argument,
          "shard overlaps values: within them it must lie from plan.shard_begin(rank) on"};
}

template <class Codec, class Element>
[[nodiscard]] status check_values(plan<Codec> const& plan,
                                  std::span<Element> values,
                                  std::span<std::byte const> state,
                                  std::span<std::byte const> workspace) noexcept
{
  return check_array(plan, values, plan.coordinates(), state, workspace, of_values);
}

//! All arguments of an exchange of values.
template <class Codec, class ShardElement, class Element>
[[nodiscard]] status check_published(plan<Codec> const& plan,
                                     std::span<ShardElement> shard,
                                     std::span<Element> values,
                                     std::span<std::byte const> state,
                                     std::span<std::byte const> workspace) noexcept
{
  if (status const s = check_values(plan, values, state, workspace); !s.ok()) { return s; }
  if (status const s = check_shard(plan, shard, state, workspace); !s.ok()) { return s; }
  return check_place(plan, std::span<ShardElement const>{shard}, std::span<Element const>{values});
}

}  // namespace detail

template <executor Executor,
          publishing Codec,
          gradient_values Shard,
          gradient_memory Values,
          class Gather>
status all_gather_values(Executor const& exec,
                         plan<Codec> const& plan,
                         Shard&& shard,
                         Values&& values,
                         std::span<std::byte> state,
                         std::span<std::byte> workspace,
                         Gather&& gather)
{
  auto const own = detail::values_of(shard);
  auto const all = detail::span_of(values);
  if (status const s = detail::check_published(plan, own, all, state, workspace); !s.ok()) {
    return s;
  }
  if (status const s = exec.check(); !s.ok()) { return s; }
  return detail::walk_exchange(
    exec, plan, detail::make_arrays(plan, own, all, state, workspace), workspace, gather);
}

template <executor Executor, publishing Codec, gradient_values Shard, gradient_memory Values>
status encode_shard(Executor const& exec,
                    plan<Codec> const& plan,
                    Shard&& shard,
                    Values&& values,
                    std::span<std::byte> state,
                    std::span<std::byte> workspace)
{
  auto const own = detail::values_of(shard);
  auto const all = detail::span_of(values);
  if (status const s = detail::check_published(plan, own, all, state, workspace); !s.ok()) {
    return s;
  }
  if (status const s = exec.check(); !s.ok()) { return s; }
  auto const arrays = detail::make_arrays(plan, own, all, state, workspace);
  return walk(typename Codec::stages{}, [&]<class Entry>(Entry entry) -> status {
    if constexpr (is_round<Entry> || Entry::part == exchange_part::decode) {
      return {};
    } else {
      return exec.perform(entry, plan, arrays.of(entry));
    }
  });
}

template <executor Executor, publishing Codec, gradient_memory Values>
status decode_values(Executor const& exec,
                     plan<Codec> const& plan,
                     Values&& values,
                     std::span<std::byte> state,
                     std::span<std::byte> workspace)
{
  auto const all       = detail::span_of(values);
  status const checked = detail::check_values(plan, all, state, workspace);
  return detail::perform_checked<exchange_part::decode>(checked, exec, plan, all, state, workspace);
}

}  // namespace tersum::inline v0
