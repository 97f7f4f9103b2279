// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of device/add_momentum.hpp.

#include <tersum/block/detail/arithmetic_of.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

template <class Momentum, class Element, class Value>
struct momentum_item {
  Momentum rule;
  Element const* gradient;
  float const* kept;
  float* next;
  Value* values;

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const& memory, std::size_t i) const
  {
    arithmetic_of<Memory> const math{};
    float const own    = to_float(memory.load(gradient + i));
    float const before = memory.load(kept + i);
    float const after  = rule.next(math, own, before);
    Value const value  = from_float<Value>(rule.value(math, own, after));
    bool const keeps   = is_finite(after) && is_finite(to_float(value));
    memory.store(next + i, keeps ? after : before);
    memory.store(values + i, value);
  }
};

template <class Residual>
struct masking_item {
  Residual const* residual;
  float* momenta;

  TERSUM_EXEC_CHECK_DISABLE
  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const& memory, std::size_t i) const
  {
    if (to_float(memory.load(residual + i)) == 0) { memory.store(momenta + i, 0.0f); }
  }
};

//! Whether arrays that may differ in their elements have no byte in common.
template <class A, class B>
[[nodiscard]] bool apart(std::span<A> a, std::span<B> b) noexcept
{
  return are_disjoint(std::as_bytes(a), std::as_bytes(b));
}

template <class T>
[[nodiscard]] bool placed(std::span<T> array) noexcept
{
  auto const address = reinterpret_cast<std::uintptr_t>(array.data());
  return array.empty() || (address != 0 && address % alignof(T) == 0);
}

}  // namespace detail

template <executor Executor, momentum Momentum, readable_values Gradient, writable_values Values>
status add_momentum(Executor const& exec,
                    Momentum const& rule,
                    Gradient const& gradient,
                    std::span<float const> kept,
                    std::span<float> next,
                    Values&& values)
{
  using element = std::ranges::range_value_t<Gradient>;
  using value   = std::ranges::range_value_t<Values>;
  if constexpr (requires { rule.check(); }) {
    if (status const s = rule.check(); !s.ok()) { return s; }
  }
  std::span<element const> const from{gradient};
  std::span<value> const to{values};
  bool const in_place = std::is_same_v<element, value> && detail::begin_alike(from, to);
  status const s =
    detail::argument_check{}
      .require(kept.size() == from.size(), "kept has another length than gradient")
      .require(next.size() == from.size(), "next has another length than gradient")
      .require(to.size() == from.size(), "values has another length than gradient")
      .require(detail::placed(from) && detail::placed(kept) && detail::placed(next) &&
                 detail::placed(to),
               "an array is a null pointer, or not aligned to its elements")
      .require(in_place || detail::apart(from, to), "values overlaps gradient")
      .require(detail::begin_alike(kept, next) || detail::apart(kept, next), "next overlaps kept")
      .require(detail::apart(from, next) && detail::apart(from, kept),
               "momenta overlap the gradient")
      .require(detail::apart(to, next) && detail::apart(to, kept), "momenta overlap the values")
      .result();
  if (!s.ok() || from.empty()) { return s; }
  return exec.each(
    detail::momentum_item<Momentum, element, value>{
      rule, from.data(), kept.data(), next.data(), to.data()},
    from.size());
}

template <executor Executor, readable_values Residual>
status mask_momentum(Executor const& exec, Residual const& residual, std::span<float> momenta)
{
  using element = std::ranges::range_value_t<Residual>;
  std::span<element const> const from{residual};
  status const s =
    detail::argument_check{}
      .require(momenta.size() == from.size(), "momenta has another length than residual")
      .require(detail::placed(from) && detail::placed(momenta),
               "an array is a null pointer, or not aligned to its elements")
      .require(detail::apart(from, momenta), "momenta overlaps residual")
      .result();
  if (!s.ok() || from.empty()) { return s; }
  return exec.each(detail::masking_item<element>{from.data(), momenta.data()}, from.size());
}

}  // namespace tersum::inline v0
