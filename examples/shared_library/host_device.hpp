// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The host as a device of the shared library.

#pragma once

#include "codec_of.hpp"

#include <tersum/execute/cpu_executor.hpp>

#include <cstring>

namespace shared_library {

struct host_device {
  int threads;

  [[nodiscard]] tersum::cpu_executor executor(void*) const { return {.threads = threads}; }

  [[nodiscard]] static tersum::status copy(std::byte* to,
                                           std::byte const* from,
                                           std::size_t bytes,
                                           void*)
  {
    std::memcpy(to, from, bytes);
    return {};
  }
};

}  // namespace shared_library
