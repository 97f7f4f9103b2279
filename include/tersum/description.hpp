// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What policies say of themselves, from which fingerprints follow.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

namespace detail {

//! @brief The hash of a name: FNV-1a.
[[nodiscard]] constexpr std::uint64_t named(std::string_view name) noexcept
{
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char const c : name) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u; }
  return hash;
}

}  // namespace detail

//! @brief A hash of 64 bits over a name and over what it stands for in full. Every compiler finds the same one.
//!
//! `describe()` of a policy returns it: `return {"rms_range", clip, headroom, Scalar{}};`
class [[nodiscard]] description {
 public:
  //! @param name   The policy's own, which no other has.
  //! @param parts  All that the policy depends on: integers, floats, spans of floats, policies. A type stands as a value.
  template <class... Parts>
  constexpr description(std::string_view name, Parts const&... parts) noexcept
    : hash_(detail::named(name))
  {
    (add(parts), ...);
  }

  [[nodiscard]] constexpr std::uint64_t hash() const noexcept { return hash_; }

 private:
  constexpr void add(std::uint64_t value) noexcept { hash_ = detail::mix(hash_, value); }
  constexpr void add(description const& part) noexcept { add(part.hash_); }
  constexpr void add(float value) noexcept
  {
    add(std::uint64_t{std::bit_cast<std::uint32_t>(value)});
  }
  constexpr void add(std::span<float const> values) noexcept
  {
    add(values.size());
    for (float const value : values) { add(value); }
  }
  template <class T>
  requires(std::integral<T> || std::is_enum_v<T>) constexpr void add(T value) noexcept
  {
    add(static_cast<std::uint64_t>(value));
  }
  template <class Policy>
  requires(std::is_class_v<Policy>) constexpr void add(Policy const& part) noexcept
  {
    add(part.describe());
  }

  std::uint64_t hash_;
};

namespace detail {

//! The type whose member it is.
template <class Policy>
Policy describer(description (Policy::*describe)() const);

}  // namespace detail

}  // namespace tersum::inline v0
