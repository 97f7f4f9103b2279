// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The table of all opcodes, and how a function of values becomes an instruction.

#pragma once

#include "warp.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace tersum::simulator {

using operation_table = std::unordered_map<std::string, operation>;

void add_integer_operations(operation_table& table);
void add_float_operations(operation_table& table);
void add_conversions(operation_table& table);
void add_memory_operations(operation_table& table);
void add_warp_operations(operation_table& table);

//! @name Registers
//! A value is in the low bits of its slot; signed ones are extended.
//! @{
template <class T>
[[nodiscard]] T value_of(std::uint64_t bits)
{
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else if constexpr (std::is_same_v<T, bool>) {
    return (bits & 1) != 0;
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
[[nodiscard]] std::uint64_t bits_of(T value)
{
  if constexpr (std::is_same_v<T, float>) {
    // Arithmetic has one NaN.
    return value != value ? 0x7fffffffU : std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}
//! @}

//! @brief The instruction that does d = Function(sources...) in every lane.
template <auto Function, class D, class... S, std::size_t... I>
void apply_at(warp& w, instruction const& i, lane_set active, std::index_sequence<I...>)
{
  std::uint64_t* const d                          = w.lanes(i.slots[0]);
  [[maybe_unused]] std::uint64_t const* const s[] = {w.lanes(i.slots[1 + I])...};
  for_lanes(active, [&](unsigned l) { d[l] = bits_of<D>(Function(value_of<S>(s[I][l])...)); });
}

template <auto Function, class D, class... S>
void apply(warp& w, instruction const& i, lane_set active)
{
  apply_at<Function, D, S...>(w, i, active, std::index_sequence_for<S...>{});
}

//! @brief A type by the name that opcodes have for it.
template <class T>
struct named {
  using type = T;
  char const* name;
};

//! @brief Calls each(named type) for the types.
template <class Each, class... T>
void for_types(Each const& each, named<T>... types)
{
  (each(types), ...);
}

inline constexpr auto for_integers = [](auto const& each) {
  for_types(each,
            named<std::uint16_t>{"u16"},
            named<std::int16_t>{"s16"},
            named<std::uint32_t>{"u32"},
            named<std::int32_t>{"s32"},
            named<std::uint64_t>{"u64"},
            named<std::int64_t>{"s64"});
};
inline constexpr auto for_bits = [](auto const& each) {
  for_types(
    each, named<std::uint16_t>{"b16"}, named<std::uint32_t>{"b32"}, named<std::uint64_t>{"b64"});
};
inline constexpr auto for_floats = [](auto const& each) {
  for_types(each, named<float>{"f32"}, named<double>{"f64"});
};

//! @brief Adds `name` with a type behind it, of one function on one type.
template <auto Function, class D, class... S>
void add(operation_table& table, std::string const& name)
{
  constexpr char const* forms[] = {"d", "ds", "dss", "dsss", "dssss"};
  table[name]                   = {.run = &apply<Function, D, S...>, .form = forms[sizeof...(S)]};
}

}  // namespace tersum::simulator
