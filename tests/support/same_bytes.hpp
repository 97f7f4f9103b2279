// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Equality of arrays to the last bit, NaN and signs of zeros included.

#pragma once

#include <cstring>
#include <vector>

namespace tersum::tests {

template <class T>
[[nodiscard]] bool same_bytes(std::vector<T> const& a, std::vector<T> const& b)
{
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace tersum::tests
