// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The machine as a thread of the host sees it, for code that threads of kernels call with their context.

#pragma once

#include <tersum/block/group.hpp>
#include <tersum/config.hpp>
#include <tersum/types.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

namespace tersum::inline v0::detail {

//! Memory and arithmetic. Bytes may be viewed as several types.
struct host_machine : host_group {
  template <class T>
  [[nodiscard]] TERSUM_INLINE T load(T const* from) const
  {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
  }
  template <class T>
  TERSUM_INLINE void store(T* to, T value) const
  {
    std::memcpy(to, &value, sizeof(T));
  }
  void atomic_add(std::uint32_t* to, std::uint32_t value) const
  {
    __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
  }
  template <class Element>
  [[nodiscard]] TERSUM_INLINE static float value(Element from)
  {
    return to_float(from);
  }
  template <class Element>
  [[nodiscard]] TERSUM_INLINE static Element finite_element(float from)
  {
    return finite_from_float<Element>(from);
  }
  [[nodiscard]] static std::uint32_t population(std::uint32_t word)
  {
    return static_cast<std::uint32_t>(std::popcount(word));
  }
};

}  // namespace tersum::inline v0::detail
