// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Memory as items of work see it on the CPU.

#pragma once

namespace tersum::inline v0::detail {

//! @brief Memory as the CPU executor's items see it.
struct host_memory {
  template <class T>
  [[nodiscard]] T load(T const* from) const
  {
    return *from;
  }
  template <class T>
  void store(T* to, T value) const
  {
    *to = value;
  }
};

}  // namespace tersum::inline v0::detail
